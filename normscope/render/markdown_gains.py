"""Inspection -> the stored gains and biases over depth, as markdown."""

from normscope.inspection import Inspection
from normscope.render.gain_rows import gain_rows
from normscope.render.gains import COLUMNS, NO_VALUES, gain_cells
from normscope.render.markdown import code, escaped, joined, table


def render_markdown_gains(inspection: Inspection) -> str:
    """Return a table of gains and one of biases; without values it is said why."""
    parts = [
        (title, gain_rows(inspection, biases=biases))
        for title, biases in (("gains", False), ("biases", True))
    ]
    tables = [
        text
        for title, rows in parts
        if rows
        for text in (
            f"**{title}**",
            table(
                ("name", *COLUMNS),
                [(code(row.name), *map(escaped, gain_cells(row))) for row in rows],
            ),
        )
    ]
    return joined(tables or [NO_VALUES])
