"""One JSON object of a report -> the target that it tells of."""

from normscope.audit.fields import Fields
from normscope.audit.findings import Finding, Severity
from normscope.audit.policy import Place
from normscope.audit.report import (
    AuditedTarget,
    Failure,
    GoneFinding,
    StackFacts,
    TargetFacts,
    Unchecked,
)
from normscope.errors import FailureKind


def target_of(line: Fields) -> AuditedTarget:
    """Return an audited target, or one that failed. Raises `UsageError`."""
    target, family = line.text("target"), line.text("family")
    facts = None if "kind" in line.values else line.object_or_none("facts")
    return AuditedTarget(
        target=target,
        family=family,
        place=_place(line.object_or_none("place")),
        facts=None if facts is None else facts_in(facts),
        findings=tuple(_finding(item, target, family) for item in line.objects("findings")),
        checked=line.texts("checked"),
        unchecked=tuple(_unchecked(item) for item in line.objects("unchecked")),
        failure=_failure(line) if "kind" in line.values else None,
    )


def gone_of(item: Fields) -> GoneFinding:
    """Return a finding that the baseline alone has."""
    return GoneFinding(
        code=item.text("code"),
        target=item.text("target"),
        where=item.text("where"),
        found=item.text("found"),
        expected=item.text("expected"),
    )


def _place(item: Fields | None) -> Place | None:
    if item is None:
        return None
    return Place(file=item.text("file"), line=max(item.whole("line"), 1))


def _failure(line: Fields) -> Failure:
    return Failure(
        kind=line.word("kind", FailureKind), message=line.text("message"), hint=line.text("hint")
    )


def _unchecked(item: Fields) -> Unchecked:
    return Unchecked(code=item.text("code"), reason=item.text("reason"))


def _finding(item: Fields, target: str, family: str) -> Finding:
    return Finding(
        code=item.text("code"),
        severity=item.word("severity", Severity),
        target=target,
        family=family,
        where=item.text("where"),
        places=item.texts("places"),
        message=item.text("message"),
        detail=item.text("detail"),
        found=item.text("found"),
        expected=item.text("expected"),
        known=item.flag("known"),
    )


def facts_in(item: Fields) -> TargetFacts:
    """Return the facts of a target. Raises `UsageError`."""
    return TargetFacts(
        class_name=item.text("class"),
        model_type=item.text_or_none("model_type"),
        revision=item.text_or_none("revision"),
        config=item.text_or_none("config"),
        dtype=item.text("dtype"),
        parameters=item.whole("parameters"),
        placement=item.text("placement"),
        stacks=tuple(_stack(stack) for stack in item.objects("stacks")),
        outside=item.texts("outside"),
        norm_calls=item.whole("norm_calls"),
    )


def _stack(item: Fields) -> StackFacts:
    return StackFacts(
        path=item.text("path"),
        blocks=item.whole("blocks"),
        placements=item.texts("placements"),
        norms=item.texts("norms"),
    )
