"""Stored norm parameters -> the sentences that a reader should not miss."""

from collections.abc import Iterable, Iterator
from statistics import median

from normscope.render.figures import counted, one_of
from normscope.render.names import siblings_as_one
from normscope.render.visible import visible
from normscope.weights.report import AdapterReport, ParameterProblem, StoredParameter, WeightsReport

_NEAR = 0.1
"""How far from 0, 1 or 2 the median of the gains' means may lie to count as centred there."""
_MOST_NAMES = 8


def stored_remarks(stored: WeightsReport | None, dtype: str) -> Iterator[str]:
    """Say what is missing, misshapen, renamed or odd among the norms' stored parameters.

    `dtype` is the one that the model is built in.
    """
    if stored is None:
        return
    parameters = stored.parameters
    missing = _with_problem(parameters, ParameterProblem.MISSING)
    if missing:
        yield f"missing from the weights, and filled with fresh values on loading: {missing}"
    misshapen = _with_problem(parameters, ParameterProblem.SHAPE)
    if misshapen:
        yield f"stored with another shape than the model has: {misshapen}"
    yield from _renamed(parameters)
    yield from _other_dtype(parameters, dtype)
    yield from _values(parameters)
    if stored.unexpected:
        yield (
            f"{counted(len(stored.unexpected), 'stored tensor')} that the model does not read: "
            f"{_named(stored.unexpected)}"
        )


def adapter_remarks(adapter: AdapterReport | None) -> Iterator[str]:
    """Say whose adapter it is, and which norms it trains."""
    if adapter is None:
        return
    what = f"norm parameters {_named(adapter.trains)}" if adapter.trains else "no norm"
    yield f"an adapter of {visible(adapter.base)}, which is shown here; it trains {what}"


def _named(names: Iterable[str]) -> str:
    shown = siblings_as_one(dict.fromkeys(map(visible, names)))
    more = len(shown) - _MOST_NAMES
    return ", ".join(shown[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


def _with_problem(parameters: Iterable[StoredParameter], problem: ParameterProblem) -> str:
    return _named(item.name for item in parameters if item.problem is problem)


def _renamed(parameters: Iterable[StoredParameter]) -> Iterator[str]:
    found = [item for item in parameters if item.renamed]
    if found:
        first = found[0]
        yield (
            f"{counted(len(found), 'norm parameter')} renamed on loading, like "
            f"{visible(first.stored_name or '')} to {visible(first.name)}"
        )


def _other_dtype(parameters: Iterable[StoredParameter], dtype: str) -> Iterator[str]:
    others = dict.fromkeys(p.dtype for p in parameters if p.dtype not in (None, dtype))
    if others:
        named = one_of(visible(str(other)) for other in others)
        yield f"norm parameters are stored in {named}, and the model is built in {dtype}"


def _values(parameters: tuple[StoredParameter, ...]) -> Iterator[str]:
    non_finite = [item.name for item in parameters if item.values and item.values.non_finite]
    if non_finite:
        yield f"NaN or infinite values in {_named(non_finite)}"
    gains = [item for item in parameters if item.is_gain and item.values is not None]
    dead = [item.name for item in gains if item.values is not None and item.values.dead]
    if dead:
        yield f"channels that a gain of zero switches off in {_named(dead)}"
    for offset in (0.0, 1.0):
        means = [v.mean for item in gains if (v := item.values) is not None and v.offset == offset]
        if means:
            yield from _centred(median(means), offset)


def _centred(centre: float, offset: float) -> Iterator[str]:
    """Tell of an offset that was perhaps applied twice or never (NS303)."""
    if offset and abs(centre - 1) < _NEAR:
        yield (
            f"the stored gains are centred at {centre:.3g}, and the norms add 1 to them: "
            "perhaps they hold it already"
        )
    elif not offset and abs(centre) < _NEAR:
        yield (
            f"the stored gains are centred at {centre:.3g}, and the norms multiply by them as "
            "they are: perhaps an offset of 1 is missing"
        )
    elif not offset and abs(centre - 2) < _NEAR:
        yield f"the stored gains are centred at {centre:.3g}: perhaps 1 was added twice"
