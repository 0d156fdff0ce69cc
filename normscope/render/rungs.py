"""One block of an Inspection -> the rungs that its drawing is made of, in order of execution."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from normscope.inspection import BlockReport, BranchKind, BranchReport, NormReport, Site
from normscope.render.equation import NORM, Equation, read_equation
from normscope.render.footnotes import Footnotes, marked
from normscope.render.names import siblings_as_one, within_block
from normscope.render.visible import visible


@dataclass(frozen=True, slots=True, kw_only=True)
class Rung:
    """Branches that are added to the stream in one place; several of them are parallel."""

    shared: tuple[str, ...]
    """What all branches pass before they part."""
    branches: tuple[tuple[str, ...], ...]
    skip: tuple[str, ...] | None
    """What the skip passes; None where no skip goes around the branch."""
    sign: str
    after: tuple[str, ...]
    """What the sum passes."""


def rungs_of(
    block: BlockReport, norms: Mapping[str, NormReport], footnotes: Footnotes
) -> tuple[Rung, ...]:
    """Return the block's rungs; `norms` by name tell what stands in each place.

    Norms inside a branch and what makes a branch odd become footnotes.
    """
    draft = _Draft(block, norms, footnotes)
    return tuple(draft.rung(group) for group in _side_by_side(block.branches))


def _side_by_side(branches: Iterable[BranchReport]) -> Iterator[list[BranchReport]]:
    for parallel, members in groupby(branches, key=lambda branch: branch.parallel):
        if parallel:
            yield list(members)
        else:
            yield from ([branch] for branch in members)


@dataclass(frozen=True, slots=True)
class _Draft:
    block: BlockReport
    norms: Mapping[str, NormReport]
    footnotes: Footnotes

    def rung(self, group: Sequence[BranchReport]) -> Rung:
        equations = [_equation(branch) for branch in group]
        first, last = equations[0], equations[-1]
        shared = self._at(Site.BRANCH_INPUT, group[0]) if _is_shared(group) else ()
        return Rung(
            shared=shared,
            branches=tuple(
                (() if shared else self._at(Site.BRANCH_INPUT, branch))
                + self._from_kind_on(branch, equation)
                for branch, equation in zip(group, equations, strict=True)
            ),
            skip=first.skip,
            sign=last.sign,
            after=next(filter(None, (self._at(Site.TRUNK, branch) for branch in group)), ()),
        )

    def _from_kind_on(self, branch: BranchReport, equation: Equation) -> tuple[str, ...]:
        leaving = self._at(Site.BRANCH_OUTPUT, branch) or (NORM,)
        passed = [box for step in equation.branch for box in (leaving if step == NORM else (step,))]
        kind = "f" if branch.kind is BranchKind.OTHER else branch.kind.value
        for note in self._notes(branch):
            kind = marked(kind, self.footnotes.mark(note))
        return (kind, *passed)

    def _notes(self, branch: BranchReport) -> Iterator[str]:
        kinds: dict[str, list[str]] = {}
        for name in branch.norms.get(Site.INSIDE_BRANCH, ()):
            kinds.setdefault(self._kind(name), []).append(within_block(name, self.block.path))
        if kinds:
            listed = (
                f"{', '.join(siblings_as_one(dict.fromkeys(names)))} ({kind})"
                for kind, names in kinds.items()
            )
            yield f"with norms inside: {'; '.join(listed)}"
        if branch.reason is not None:
            yield visible(branch.reason)

    def _at(self, site: Site, branch: BranchReport) -> tuple[str, ...]:
        """Return one box for all norms that stand at a site, none for none."""
        kinds = self._kinds(branch.norms.get(site, ()))
        return ("/".join(kinds),) if kinds else ()

    def _kinds(self, names: Iterable[str]) -> tuple[str, ...]:
        found = Counter(self._kind(name) for name in names)
        return tuple(kind if count == 1 else f"{kind} ×{count}" for kind, count in found.items())

    def _kind(self, name: str) -> str:
        return visible(self.norms[name].kind) if name in self.norms else NORM


def _is_shared(group: Sequence[BranchReport]) -> bool:
    entering = {branch.norms.get(Site.BRANCH_INPUT, ()) for branch in group}
    return len(group) > 1 and len(entering) == 1 and all(branch.shared_norm for branch in group)


def _equation(branch: BranchReport) -> Equation:
    """Read the branch's formula; of one that cannot be read, draw what the sites say."""
    read = read_equation(branch.formula, normalized=Site.TRUNK in branch.sites)
    if read is not None:
        return read
    return Equation(
        skip=() if branch.add is not None else None,
        sign="+",
        branch=(NORM,) if Site.BRANCH_OUTPUT in branch.sites else (),
    )


def runs_text(calls: Iterable[int]) -> str:
    """Return how often blocks run, where that is not once: `, run 2 or 3 times`."""
    found = sorted(set(calls))
    if found == [1] or not found:
        return ""
    return f", run {' or '.join(map(str, found))} times" if found != [0] else ", never run"
