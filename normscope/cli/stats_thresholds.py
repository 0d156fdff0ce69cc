"""`--threshold NS401=100`: what was typed -> from where on something is a finding."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from normscope.errors import UsageError
from normscope.statistics import DEFAULT_THRESHOLDS, Thresholds

_NAMES: dict[str, Callable[[Thresholds, float], Thresholds]] = {
    "NS401": lambda old, value: replace(old, massive=value),
    "NS401.share": lambda old, value: replace(old, massive_share=value),
    "NS401.channels": lambda old, value: replace(old, massive_channels=int(value)),
    "NS402": lambda old, value: replace(old, sink=value),
    "NS404": lambda old, value: replace(old, eps_share=value),
    "NS405": lambda old, value: replace(old, error=value),
}
THRESHOLD_HELP = f"Where a finding begins, like NS402=50: {', '.join(_NAMES)}."


def read_thresholds(typed: Sequence[str]) -> Thresholds:
    """Return the thresholds with those that were typed; raises `UsageError` for what is none."""
    thresholds = DEFAULT_THRESHOLDS
    for item in typed:
        name, _, number = item.partition("=")
        if name not in _NAMES:
            raise UsageError(f"{item!r} names no threshold", f"name one of {', '.join(_NAMES)}")
        thresholds = _NAMES[name](thresholds, _number(item, name, number))
    return thresholds


def _number(item: str, name: str, typed: str) -> float:
    try:
        value = float(typed)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or value < 0:
        raise UsageError(f"{item!r} is no threshold", f"give a number of 0 or more, like {name}=1")
    return value
