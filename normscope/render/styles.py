"""Which style a piece of a view has; colour repeats what the words say and never adds to it."""

from normscope.inspection import Placement

TITLE = "bold"
QUIET = "dim"
NAME = ""
FORMULA = "cyan"
NOTE = "yellow"
PATH = "bold"

_PLACEMENTS = {
    Placement.UNKNOWN: "bold red",
    Placement.OTHER: "bold yellow",
    Placement.MIXED: "bold yellow",
}


def placement_style(placement: Placement) -> str:
    """Return the style of a placement's name."""
    return _PLACEMENTS.get(placement, "bold green")
