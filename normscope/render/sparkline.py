"""Numbers -> a row of bars on a linear scale."""

import math
from collections.abc import Sequence

_BARS = "▁▂▃▄▅▆▇█"
_FLAT = 1e-3
"""Share of the largest magnitude below which a range is drawn as one height."""


def sparkline(values: Sequence[float], *, most: int) -> str:
    """Return a bar for each value, for at most `most` of them, evenly chosen; `!` is not finite."""
    chosen = values
    if len(values) > most:
        step = (len(values) - 1) / (most - 1)
        chosen = [values[round(number * step)] for number in range(most)]
    finite = [value for value in values if math.isfinite(value)]
    low, high = min(finite, default=0.0), max(finite, default=0.0)
    return "".join(_bar(value, low, high) for value in chosen)


def _bar(value: float, low: float, high: float) -> str:
    if not math.isfinite(value):
        return "!"
    if high - low <= _FLAT * max(abs(high), abs(low)):
        return _BARS[len(_BARS) // 2 - 1]
    return _BARS[min(len(_BARS) - 1, int((value - low) / (high - low) * len(_BARS)))]
