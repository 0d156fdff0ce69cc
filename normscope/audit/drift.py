"""Locked facts + facts -> Observations: what changed, in a reviewer's words."""

from collections.abc import Iterator, Mapping, Sequence

from normscope.audit.findings import Observation, Severity
from normscope.audit.report import StackFacts, TargetFacts

_NONE = "none"
_ALL = "all: "
"""Before the wiring of a stack whose blocks are all alike."""


def drift(locked: TargetFacts, now: TargetFacts) -> Iterator[Observation]:
    """Yield one observation a changed fact, the model's first, then each stack's.

    A config or a revision that changed is a note: what matters of it is a fact of its own.
    """
    changed = [*_of_model(locked, now), *_of_stacks(locked, now), *_of_outside(locked, now)]
    yield from changed
    alone = "" if changed else ", and nothing else changed"
    for fact, was, found in (
        ("revision", locked.revision, now.revision),
        ("config digest", locked.config, now.config),
    ):
        yield from _unlike("", fact, was, found, tail=alone, severity=Severity.NOTE)


def _of_model(locked: TargetFacts, now: TargetFacts) -> Iterator[Observation]:
    yield from _unlike("", "class", locked.class_name, now.class_name)
    yield from _unlike("", "model type", locked.model_type, now.model_type)
    yield from _unlike("", "dtype", locked.dtype, now.dtype)
    yield from _unlike("", "count of parameters", locked.parameters, now.parameters)
    yield from _unlike("", "count of norm calls", locked.norm_calls, now.norm_calls)
    if _placements(locked) == _placements(now):  # else the stacks tell it
        yield from _unlike("", "placement", locked.placement, now.placement)


def _placements(facts: TargetFacts) -> Mapping[str, tuple[str, ...]]:
    return {stack.path: stack.placements for stack in facts.stacks}


def _of_stacks(locked: TargetFacts, now: TargetFacts) -> Iterator[Observation]:
    before = {stack.path: stack for stack in locked.stacks}
    after = {stack.path: stack for stack in now.stacks}
    for path in {**before, **after}:
        if path in before and path in after:
            yield from _of_stack(before[path], after[path])
        else:
            was = _stack_words(before.get(path))
            yield from _unlike(path, "stack", was, _stack_words(after.get(path)))


def _stack_words(stack: StackFacts | None) -> str | None:
    return None if stack is None else f"{stack.blocks} blocks, {', '.join(stack.placements)}"


def _of_stack(before: StackFacts, after: StackFacts) -> Iterator[Observation]:
    path = before.path
    yield from _unlike(path, "count of blocks", before.blocks, after.blocks)
    yield from _of_wirings(path, before.placements, after.placements)
    yield from _of_norms(path, before.norms, after.norms)


def _of_wirings(path: str, before: Sequence[str], after: Sequence[str]) -> Iterator[Observation]:
    """Compare placements: branch by branch where the blocks were alike and are alike."""
    was, found = _branches(before), _branches(after)
    if was and len(was) == len(found):
        for one, other in zip(was, found, strict=True):
            yield from _unlike(path, "placement", one, other)
        return
    gone = [each for each in before if each not in after]
    new = [each for each in after if each not in before]
    yield from _unlike(path, "placement", "; ".join(gone), "; ".join(new))


def _branches(wirings: Sequence[str]) -> Sequence[str]:
    """Return the branches of `all: attention pre-norm x + f(N(x)), …`; none where blocks differ."""
    if len(wirings) != 1 or not wirings[0].startswith(_ALL):
        return ()
    return wirings[0].removeprefix(_ALL).split(", ")


def _of_outside(locked: TargetFacts, now: TargetFacts) -> Iterator[Observation]:
    yield from _of_norms("", locked.outside, now.outside)


def _of_norms(stack: str, before: Sequence[str], after: Sequence[str]) -> Iterator[Observation]:
    """Compare norms place by place; `stack` takes the place of nothing: places begin with `*`."""
    was, found = _by_place(before), _by_place(after)
    for place in {**was, **found}:
        gone = [norm for norm in was.get(place, ()) if norm not in found.get(place, ())]
        new = [norm for norm in found.get(place, ()) if norm not in was.get(place, ())]
        where = f"{stack}.{place}" if stack else place
        if gone or new:
            yield from _of_norm(where, gone, new)


def _by_place(norms: Sequence[str]) -> Mapping[str, list[str]]:
    """Return the norms at each place: `*.input_layernorm: RMSNorm eps 1e-06 gain w`."""
    found: dict[str, list[str]] = {}
    for text in norms:
        place, _, norm = text.rpartition(": ")
        found.setdefault(place, []).append(norm)
    return found


def _of_norm(where: str, before: Sequence[str], after: Sequence[str]) -> Iterator[Observation]:
    """Compare the norms of one place, of which there are several where blocks differ."""
    was, found = [_labelled(each) for each in before], [_labelled(each) for each in after]
    if not was or not found or len({tuple(each) for each in (*was, *found)}) > 1:
        yield from _unlike(where, "norm", " and ".join(before), " and ".join(after))
        return
    labels = [label for label in was[0] if len({each[label] for each in (*was, *found)}) > 1]
    if len(was) == len(found) == 1:
        for label in labels:
            yield from _unlike(where, label, was[0][label], found[0][label])
    else:
        yield from _unlike(where, "norm", _words(was, labels), _words(found, labels))


def _words(norms: Sequence[Mapping[str, str]], labels: Sequence[str]) -> str:
    """Return the facts in which the norms of one place differ: `eps 1e-06 blocks 31 and …`."""
    return " and ".join(" ".join(f"{label} {norm[label]}" for label in labels) for norm in norms)


def _labelled(norm: str) -> Mapping[str, str]:
    """Return kind, eps, gain … of a norm, its words as they are where they are no pairs."""
    kind, *words = norm.split(" ")
    labels = words[::2]
    if len(words) % 2 or len(set(labels)) < len(labels):
        return {"norm": norm}
    return {"kind": kind, **dict(zip(labels, words[1::2], strict=True))}


def _unlike(
    where: str,
    fact: str,
    was: str | int | None,
    found: str | int | None,
    *,
    tail: str = "",
    severity: Severity | None = None,
) -> Iterator[Observation]:
    """Yield what changed; "" and None are no such thing."""
    if was == found:
        return
    before, after = (_NONE if each in {None, ""} else str(each) for each in (was, found))
    yield Observation(
        where=where,
        message=f"{fact} was {before} in the lock file, and is {after}{tail}",
        found=f"{fact} {after}",
        expected=f"{fact} {before}",
        severity=severity,
    )
