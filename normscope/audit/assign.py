"""Policy + typed targets -> tuple[Assignment]: each target and what it is held against."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence, Set

from normscope.audit.policy import Assignment, Family, Policy
from normscope.audit.policy_source import did_you_mean, mistake, raise_all
from normscope.audit.policy_table import shown
from normscope.audit.policy_targets import FoundTarget, covered, found_targets, typed_paths
from normscope.audit.rules import select_rules
from normscope.errors import UsageError


def assign(policy: Policy | None, targets: Sequence[str] = ()) -> tuple[Assignment, ...]:
    """Return every target of the policy, or those of `targets` alone, in their order.

    A target that two families have is assigned twice, one that a family has twice once. Typed
    targets that a family's patterns match are that family's, under the name that the policy has
    for them; others get the usual rules. Raises `UsageError` where nothing is to be done, and for
    patterns that match nothing: all of them at once.
    """
    if targets:
        typed = dict.fromkeys(targets)
        return _once(each for target in typed for each in _of_typed(policy, target))
    if policy is None:
        raise UsageError(
            "there is nothing to audit: no target was named, and no policy lies here",
            "normscope audit --init TARGET… -o normscope.toml",
        )
    if not policy.families:
        raise UsageError(
            f"{policy.file}: the policy has no [[family]], and no target was named",
            "add a family with targets, or name targets",
        )
    return tuple(_of_families(policy))


def shard(assignments: Sequence[Assignment], part: int, of: int) -> tuple[Assignment, ...]:
    """Return the targets of one part, counted from 1, in the order that they had.

    The targets are put in order of a digest of their names and cut into `of` runs: their sizes
    differ by one at most, and a target that is added or removed moves at most `of - 1` others.
    A target that two families have stays in one part. Raises `UsageError` where there is no such
    part.
    """
    if not 1 <= part <= of:
        raise UsageError(f"there is no shard {part} of {of}", "write `--shard 2/5`: 1/5 to 5/5")
    ordered = sorted({each.target for each in assignments}, key=_digest)
    own = frozenset(ordered[len(ordered) * (part - 1) // of : len(ordered) * part // of])
    return tuple(each for each in assignments if each.target in own)


def _digest(target: str) -> bytes:
    return hashlib.sha256(target.encode(errors="surrogateescape")).digest()


def _once(assignments: Iterator[Assignment]) -> tuple[Assignment, ...]:
    return tuple({(each.family, each.target): each for each in assignments}.values())


def _of_families(policy: Policy) -> Iterator[Assignment]:
    mistakes: list[UsageError] = []
    found = [_targets_of(family, policy, mistakes) for family in policy.families]
    raise_all(mistakes)
    for family, targets in zip(policy.families, found, strict=True):
        for each in targets:
            yield _assigned(policy, family, each)


def _targets_of(
    family: Family, policy: Policy, mistakes: list[UsageError]
) -> tuple[FoundTarget, ...]:
    """Return the targets of a family, each once; mistakes are added to `mistakes`."""
    found: dict[str, FoundTarget] = {}
    for pattern in family.targets:
        try:
            for each in found_targets(pattern, policy.directory):
                found.setdefault(each.opened, each)
        except UsageError as error:
            mistakes.append(error)
    targets = tuple(found.values())
    if not mistakes:
        mistakes.extend(_idle(family, {each.target for each in targets}))
    return targets


def _idle(family: Family, names: Set[str]) -> Iterator[UsageError]:
    """Yield the patterns of overrides that match no target of their family."""
    for override in family.overrides:
        for pattern in override.targets:
            if covered(pattern.text, names) is None:
                message = f"the override's {shown(pattern.text)} is no target of {family.name}"
                near = did_you_mean(pattern.text, names, "")
                hint = near if near.startswith("did") else "an override is for a family's targets"
                yield mistake(pattern.place, message, hint)


def _of_typed(policy: Policy | None, typed: str) -> Iterator[Assignment]:
    if policy is None:
        yield _of_no_family(typed, None, ())
        return
    paths = dict(typed_paths(typed, policy.directory))
    taken = [(family, _typed_in(family, typed, paths)) for family in policy.families]
    found = [_assigned(policy, family, each) for family, each in taken if each is not None]
    yield from found or [_of_no_family(typed, policy.select, policy.ignore)]


def _of_no_family(typed: str, select: Sequence[str] | None, ignore: Sequence[str]) -> Assignment:
    return Assignment(target=typed, opened=typed, rules=select_rules(select, ignore))


def _typed_in(family: Family, typed: str, paths: Mapping[str, str]) -> FoundTarget | None:
    """Return a typed target as the family names it, or None where it does not have it.

    `paths` are its names as a path, and what is opened for each; what is no path is taken by no
    glob.
    """
    for pattern in family.targets:
        if not paths and pattern.text == typed:
            return FoundTarget(target=typed, opened=typed, place=pattern.place)
        name = covered(pattern.text, paths)
        if name is not None:
            return FoundTarget(target=name, opened=paths[name], place=pattern.place)
    return None


def _assigned(policy: Policy, family: Family, found: FoundTarget) -> Assignment:
    """Return what a target is held against: its family's, and each override over those before."""
    expect, budget = family.expect, dict(family.budget)
    select = policy.select if family.select is None else family.select
    ignore = [*policy.ignore, *family.ignore]
    for override in family.overrides:
        if any(covered(pattern.text, (found.target,)) for pattern in override.targets):
            expect = override.expect.over(expect)
            budget.update(override.budget)
            select = select if override.select is None else override.select
            ignore.extend(override.ignore)
    return Assignment(
        target=found.target,
        opened=found.opened,
        family=family.name,
        place=found.place,
        expect=expect,
        rules=select_rules(select, ignore),
        budget=budget,
    )
