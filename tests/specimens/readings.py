"""Readings of values that no module is asked for."""

from normscope.activations.plan import Reading
from normscope.activations.readings import Readings
from normscope.activations.taps import ModuleTap, Side


def readings_of(count: int) -> Readings:
    """Return readings of so many values whose rows are those of the last axis."""
    tap = ModuleTap(path="norm", number=0, side=Side.INTO, position=0)
    return Readings([Reading(tap=tap, axes=(-1,), groups=None)] * count)
