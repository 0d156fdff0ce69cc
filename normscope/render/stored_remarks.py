"""Inspection -> the sentences on its stored norm parameters that a reader should not miss."""

from collections.abc import Iterable, Iterator

from normscope.inspection import Inspection, NormReport
from normscope.render.figures import all_of, counted, one_of
from normscope.render.names import siblings_as_one
from normscope.render.visible import visible
from normscope.weights.judgements import (
    StoredProblem,
    StoredProblemKind,
    differing_eps,
    stored_problems,
)
from normscope.weights.report import AdapterReport, StoredParameter

_MOST_NAMES = 8


def stored_remarks(inspection: Inspection) -> Iterator[str]:
    """Say what is missing, misshapen, renamed or odd among the norms' stored parameters."""
    stored = inspection.stored
    if stored is None:
        return
    problems = tuple(stored_problems(stored))
    yield from _told_by_name(problems, StoredProblemKind.MISSING, StoredProblemKind.SHAPE)
    yield from _renamed(problems)
    yield from _tied(inspection.norms)
    yield from _other_dtype(stored.parameters, inspection.model.dtype)
    yield from _holding_sums(stored.parameters)
    for problem in differing_eps(stored, [norm.eps for norm in inspection.norms if norm.calls]):
        yield f"{problem.message}: {problem.found}"
    yield from _told_by_name(problems, *_OF_VALUES)
    yield from (p.message for p in problems if p.kind is StoredProblemKind.OFFSET)
    yield from _unread(problems, stored.quantized)


_OF_VALUES = (
    StoredProblemKind.NON_FINITE,
    StoredProblemKind.ALL_ZERO,
    StoredProblemKind.DEAD_CHANNELS,
    StoredProblemKind.OUTLIERS,
    StoredProblemKind.CONSTANT,
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


def _told_by_name(problems: Iterable[StoredProblem], *kinds: StoredProblemKind) -> Iterator[str]:
    """Say each thing that is wrong once, with all that it is wrong with."""
    by_message: dict[tuple[StoredProblemKind, str], list[str]] = {}
    for problem in problems:
        by_message.setdefault((problem.kind, problem.message), []).append(problem.name)
    for kind in kinds:
        for (of_kind, message), names in by_message.items():
            if of_kind is kind:
                yield f"{message}: {_named(names)}"


def _renamed(problems: Iterable[StoredProblem]) -> Iterator[str]:
    found = [problem for problem in problems if problem.kind is StoredProblemKind.RENAMED]
    if found:
        yield (
            f"{counted(len(found), 'norm parameter')} renamed on loading, like "
            f"{visible(found[0].found)} to {visible(found[0].expected)}"
        )


def _tied(norms: Iterable[NormReport]) -> Iterator[str]:
    """Tell of parameters that several modules have, which a file holds once."""
    owners: dict[str, dict[str, None]] = {}
    for norm in norms:
        for name in (norm.weight, norm.bias_name):
            if name is not None and norm.module is not None:
                owners.setdefault(name, {})[visible(norm.module)] = None
    for name, modules in owners.items():
        if len(modules) > 1:
            yield f"{visible(name)} is one parameter of {all_of(siblings_as_one(modules))}"


def _other_dtype(parameters: Iterable[StoredParameter], dtype: str) -> Iterator[str]:
    others = dict.fromkeys(p.dtype for p in parameters if p.dtype not in (None, dtype))
    if others:
        named = one_of(visible(str(other)) for other in others)
        yield f"norm parameters are stored in {named}, and the model is built in {dtype}"


def _holding_sums(parameters: Iterable[StoredParameter]) -> Iterator[str]:
    found = [item for item in parameters if item.added]
    if found:
        yield (
            f"the file holds {found[0].added:g} + w where the model's norms take w "
            f"({counted(len(found), 'gain')}); the gains shown are 1 + w"
        )


def _unread(problems: Iterable[StoredProblem], quantized: int) -> Iterator[str]:
    names = [p.name for p in problems if p.kind is StoredProblemKind.UNEXPECTED]
    if names:
        what = counted(len(names), "stored tensor")
        yield f"{what} that the model does not read: {_named(names)}"
    if quantized:
        what = counted(quantized, "stored tensor")
        yield f"{what} of quantized layers (packed values, scales) not looked at"
