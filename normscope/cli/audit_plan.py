"""What was typed for `audit` -> what is to be done; every usage error comes before the work."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from normscope.audit.assign import assign, shard
from normscope.audit.policy import Assignment, Family, Policy
from normscope.audit.policy_file import find_policy, read_policy
from normscope.audit.records import Records, read_records
from normscope.audit.rules import select_rules
from normscope.cli.output import check_destination
from normscope.cli.targets import named_targets
from normscope.errors import UsageError
from normscope.render.visible import visible


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Rules that were typed; they come before those of the policy."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordFiles:
    """Where lock and baseline lie, and whether they are written anew."""

    lock: Path | None = None
    update_lock: bool = False
    baseline: Path | None = None
    update_baseline: bool = False

    def check(self) -> None:
        """Raise `UsageError` for what cannot be carried out."""
        for option, path, update in (
            ("--lock", self.lock, self.update_lock),
            ("--baseline", self.baseline, self.update_baseline),
        ):
            if update and path is None:
                wanted = option.replace("--", "--update-")
                raise UsageError(f"{wanted} needs a file", f"name it with {option} FILE")
            if update and path is not None:
                check_destination(path)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One audit."""

    policy: Policy | None
    every: tuple[Assignment, ...]
    """Of the whole run."""
    assignments: tuple[Assignment, ...]
    """Of this shard."""
    typed: bool
    """Whether targets were named: the policy's others are no part of the run."""
    whole: bool
    """Whether every target of the policy is part of the run."""
    shard: str | None
    files: RecordFiles
    records: Records
    before: Records
    """What the files that are written anew hold so far."""

    @property
    def tells_unnamed(self) -> bool:
        """Whether what only the lock file has is told here: once in all shards."""
        told_here = self.shard is None or self.shard.startswith("1/")
        return told_here and not self.typed and not self.files.update_lock


def plan_audit(
    targets: Sequence[str],
    policy: Path | None,
    selection: Selection,
    files: RecordFiles,
    part: str | None,
) -> Plan:
    """Read the policy and the records, and find the targets. Raises `UsageError`."""
    files.check()
    found = _policy(policy)
    names = named_targets(targets) if targets else []
    number, of = read_shard(part)
    every = _assigned(found, names, selection)
    whole = not names and of == 1
    return Plan(
        policy=found,
        every=every,
        assignments=every if part is None else shard(every, number, of),
        typed=bool(names),
        whole=whole,
        shard=None if part is None else f"{number}/{of}",
        files=files,
        records=read_records(
            None if files.update_lock else files.lock,
            None if files.update_baseline else files.baseline,
            accepted=files.update_baseline,
        ),
        before=_before(files, whole=whole),
    )


def _before(files: RecordFiles, *, whole: bool) -> Records:
    """Read the files that are written anew.

    One that is wrong is written over, unless it holds what is no part of this run.
    """
    try:
        return read_records(
            files.lock if files.update_lock and _exists(files.lock) else None,
            files.baseline if files.update_baseline and _exists(files.baseline) else None,
        )
    except UsageError:
        if whole:
            return Records()
        raise


def _exists(path: Path | None) -> bool:
    return path is not None and path.exists()


def _policy(named: Path | None) -> Policy | None:
    path = find_policy(Path()) if named is None else named
    return None if path is None else read_policy(path)


def _assigned(
    policy: Policy | None, names: Sequence[str], selection: Selection
) -> tuple[Assignment, ...]:
    for codes in (selection.select, selection.ignore):
        select_rules(codes or None, ())  # a code that there is not is refused by its option
    if policy is not None:
        return assign(_narrowed(policy, selection), names)
    rules = select_rules(selection.select or None, selection.ignore)
    return tuple(replace(each, rules=rules) for each in assign(None, names))


def _narrowed(policy: Policy, selection: Selection) -> Policy:
    """Return the policy with the rules that were typed in place of those that it selects."""
    if selection.select:
        families = tuple(_selecting_nothing(family) for family in policy.families)
        policy = replace(policy, families=families, select=selection.select)
    return replace(policy, ignore=(*policy.ignore, *selection.ignore))


def _selecting_nothing(family: Family) -> Family:
    overrides = tuple(replace(override, select=None) for override in family.overrides)
    return replace(family, select=None, overrides=overrides)


def read_shard(text: str | None) -> tuple[int, int]:
    """Return part and count of `2/5`; raises `UsageError` for anything else."""
    found = re.fullmatch(r"(\d{1,9})/(\d{1,9})", "1/1" if text is None else text, re.ASCII)
    if found is None:
        raise UsageError(f"--shard {visible(text or '')} is no part", "write it like 2/5")
    return int(found.group(1)), int(found.group(2))


def read_codes(typed: Sequence[str] | None) -> tuple[str, ...]:
    """Return the codes of `--select NS1,NS203`, which may be given several times."""
    return tuple(code for text in typed or () for code in text.replace(",", " ").split())
