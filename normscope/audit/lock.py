"""Lock file <-> the facts of every target, as a pull request reviews them."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path

from normscope.audit.drift import drift
from normscope.audit.fields import Fields
from normscope.audit.findings import Finding, Observation, Severity, merged
from normscope.audit.policy import Assignment, Place
from normscope.audit.read_target import facts_in
from normscope.audit.record_file import RecordKind, read_record
from normscope.audit.report import AuditedTarget, TargetFacts

LOCK = RecordKind(name="lock file", schema="normscope.lock/1", option="--update-lock")
CHANGED, UNLOCKED = "NS501", "NS502"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lock:
    """A lock file that was read."""

    file: str
    """As it was named, with `/` between folders."""
    targets: Mapping[str, TargetFacts]
    lines: Mapping[str, int]
    """Target -> its line in the file."""


def read_lock(path: Path) -> Lock:
    """Read a lock file.

    Raises `UsageError` for a file that cannot be read, is no lock file, has a target twice, or
    was written by a newer normscope.
    """
    document, text = read_record(path, LOCK)
    targets = Fields.of(document.values.get("targets"), f"{document.where}: `targets`")
    found = {
        name: facts_in(Fields.of(value, f"{document.where}: {json.dumps(name)}"))
        for name, value in targets.values.items()
    }
    return Lock(file=document.where, targets=found, lines=_lines(found, text))


def lock_text(facts: Mapping[str, TargetFacts]) -> str:
    """Return the lock file: sorted, one fact a line, the same bytes for the same facts."""
    targets = {name: _document(each) for name, each in facts.items()}
    whole = {"schema": LOCK.schema, "targets": targets}
    return json.dumps(whole, indent=2, sort_keys=True, ensure_ascii=True) + "\n"


def against_lock(target: AuditedTarget, lock: Lock, rules: Sequence[str]) -> AuditedTarget:
    """Add what differs from the lock file, by those of `rules` that look at it.

    A target that failed is returned as it is: nothing is known of it.
    """
    if target.facts is None:
        return target
    codes = [code for code in (CHANGED, UNLOCKED) if code in rules]
    locked = lock.targets.get(target.target)
    seen: dict[str, Iterable[Observation]] = {
        CHANGED: () if locked is None else drift(locked, target.facts),
        UNLOCKED: (_not_locked(),) if locked is None else (),
    }
    found = [
        finding
        for code in codes
        for finding in _findings(code, target.target, target.family, seen[code])
    ]
    return replace(
        target,
        findings=(*target.findings, *found),
        checked=tuple(sorted({*target.checked, *codes})),
        unchecked=tuple(each for each in target.unchecked if each.code not in codes),
    )


def unnamed_targets(lock: Lock, assignments: Iterable[Assignment]) -> tuple[AuditedTarget, ...]:
    """Return the targets that the lock file has and the whole policy no longer names."""
    named = {each.target for each in assignments}
    gone = Observation(
        where="",
        message="the lock file has it, and the policy does not name it",
        found="none",
        expected="a target of the policy",
    )
    return tuple(
        AuditedTarget(
            target=name,
            family="",
            place=Place(file=lock.file, line=lock.lines[name]),
            findings=_findings(UNLOCKED, name, "", (gone,)),
            checked=(UNLOCKED,),
        )
        for name in sorted(lock.targets)
        if name not in named
    )


def updated_facts(
    targets: Iterable[AuditedTarget], lock: Lock | None = None, *, whole: bool = True
) -> Mapping[str, TargetFacts]:
    """Return what a lock file is to hold after a run.

    A target that failed keeps what was locked; targets that were not part of a run stay where
    that was not of the `whole` policy.
    """
    locked = {} if lock is None else lock.targets
    found = {} if whole else dict(locked)
    for each in targets:
        facts = locked.get(each.target) if each.failure is not None else each.facts
        if facts is not None:
            found[each.target] = facts
    return found


def _not_locked() -> Observation:
    return Observation(
        where="",
        message="the lock file does not have it",
        found="a target of the policy",
        expected="none",
    )


def _findings(
    code: str, target: str, family: str, observations: Iterable[Observation]
) -> tuple[Finding, ...]:
    return merged(code, Severity.ERROR, target, family, observations)


def _document(facts: TargetFacts) -> Mapping[str, object]:
    """Return the facts as JSON has them; `class` is what inspections call it too."""
    found = {item.name: getattr(facts, item.name) for item in fields(facts)}
    found["class"] = found.pop("class_name")
    found["stacks"] = [
        {item.name: getattr(stack, item.name) for item in fields(stack)} for stack in facts.stacks
    ]
    return found


def _lines(targets: Iterable[str], text: str) -> Mapping[str, int]:
    """Return the line of each target, 1 where the file was laid out in another way."""
    keys = {line.strip(): number for number, line in enumerate(text.split("\n"), start=1)}
    return {name: keys.get(f"{json.dumps(name)}: {{", 1) for name in targets}
