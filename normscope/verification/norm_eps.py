"""Norm module -> eps and where it stands, from inputs of ever smaller amplitude.

With a statistic of exactly `a`, the output is that of a = 1 times a/d, where d is the norm's
denominator: sqrt(a² + eps), a + eps, or max(a, eps).
"""

from collections.abc import Callable

import torch

from normscope.norms import EpsPosition
from normscope.verification.norm_statistics import Groups

_AMPLITUDES = tuple(10.0 ** (-step / 4) for step in range(64))
"""1 to 1.8e-16, whose square is still a normal float32."""
_ROWS = 2
_LARGE = 1e3
"""An amplitude at which no eps is seen."""
_SEEN, _PLAIN = 1.02, 1e3
"""d/a from which eps is measured, and up to which the three forms differ."""


def measure_eps(
    run: Callable[[torch.Tensor], torch.Tensor],
    shape: tuple[int, ...],
    groups: Groups,
    *,
    centred: bool,
) -> tuple[float | None, EpsPosition]:
    """Return eps in units of the mean of squares (inside) or of its root; None if it is nowhere."""
    # What shares no statistic tells the same over and over.
    rows = shape[0] if 0 in groups.axes else min(shape[0], _ROWS)
    x = torch.randn((rows, *shape[1:]), generator=torch.Generator().manual_seed(2)).double()
    x = groups.normalized(x, centred=centred)
    whole = run((_LARGE * x).float()).double()
    seen = []
    for amplitude in _AMPLITUDES:
        y = run((amplitude * x).float()).double()
        d = float(amplitude * whole.square().sum() / (y * whole).sum())
        if d / amplitude >= _PLAIN:  # the smaller it is, the less is left of it
            break
        if d / amplitude > _SEEN:
            seen.append((amplitude, d))
    if not seen:
        return None, EpsPosition.NONE
    estimates = {
        EpsPosition.INSIDE: [d**2 - a**2 for a, d in seen],
        EpsPosition.OUTSIDE: [d - a for a, d in seen],
        EpsPosition.CLAMP: [d for _, d in seen],
    }
    position = min(estimates, key=lambda form: _spread(estimates[form]))
    return float(torch.tensor(estimates[position]).median()), position


def _spread(values: list[float]) -> float:
    return max(values) / min(values) if min(values) > 0 else float("inf")
