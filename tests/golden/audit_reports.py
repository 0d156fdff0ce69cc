"""Reports of audits made by hand: one of everything, one without findings, one of hostile text."""

from dataclasses import replace

from normscope.audit.findings import Finding, Severity
from normscope.audit.policy import Place
from normscope.audit.report import (
    AuditedTarget,
    AuditReport,
    Failure,
    GoneFinding,
    StackFacts,
    TargetFacts,
    Unchecked,
)
from normscope.errors import FailureKind

VERSIONS = {"normscope": "0.1.0", "torch": "2.13.0", "transformers": "5.24.0"}
POLICY = "ci/normscope.toml"
CHECKED = ("NS101", "NS105", "NS106", "NS107")
NO_WEIGHTS = "no weights are at hand"
HOSTILE = (
    "\x1b[2J\r\n::error::x\0 ##[error]y ]]> a|b `c` <script>&amp;</script> "
    "\ud800\u202e @all #1 %0A,: {0} [t](u) \ufffe \"'"
)

FACTS = TargetFacts(
    class_name="RobertaModel",
    model_type="roberta",
    revision=None,
    config="0123456789abcdef",
    dtype="float32",
    parameters=124_645_632,
    placement="post-norm",
    stacks=(
        StackFacts(
            path="encoder.layer",
            blocks=12,
            placements=("post-norm", "post-norm"),
            norms=("*.output.LayerNorm: LayerNorm eps 1e-05 gain w",),
        ),
    ),
    outside=("embeddings.LayerNorm: LayerNorm eps 1e-05 gain w",),
    norm_calls=25,
)


def eps_finding(target: str, *, blocks: int = 12, known: bool = False) -> Finding:
    where = "encoder.layer.*.output.LayerNorm"
    return Finding(
        code="NS106",
        severity=Severity.ERROR,
        target=target,
        family="encoders",
        where=where,
        places=tuple(where.replace("*", str(number)) for number in range(blocks)),
        message="eps is 1e-05, and the policy expects 1e-12",
        found="eps 1e-05",
        expected="eps 1e-12",
        known=known,
    )


def odd_blocks(target: str, numbers: tuple[int, ...]) -> Finding:
    return Finding(
        code="NS101",
        severity=Severity.WARNING,
        target=target,
        family="decoders",
        where="layers.*",
        places=tuple(f"layers.{number}" for number in numbers),
        message="the block is post-norm, and most of layers is pre-norm",
        found="post-norm",
        expected="pre-norm",
    )


def idle(target: str) -> Finding:
    return Finding(
        code="NS105",
        severity=Severity.NOTE,
        target=target,
        family="decoders",
        where="pooler.norm",
        places=("pooler.norm",),
        message="it was built and never ran",
        found="0 runs",
    )


def audited(name: str, family: str, line: int, *findings: Finding) -> AuditedTarget:
    return AuditedTarget(
        target=name,
        family=family,
        place=Place(file=POLICY, line=line),
        facts=FACTS,
        findings=findings,
        checked=CHECKED,
        unchecked=(Unchecked(code="NS301", reason=NO_WEIGHTS),),
    )


def failed(name: str, line: int, kind: FailureKind, message: str, hint: str) -> AuditedTarget:
    return AuditedTarget(
        target=name,
        family="decoders",
        place=Place(file=POLICY, line=line),
        failure=Failure(kind=kind, message=message, hint=hint),
    )


def everything() -> AuditReport:
    targets = (
        audited("type:bert", "encoders", 4, eps_finding("type:bert", known=True)),
        audited("type:roberta", "encoders", 4, eps_finding("type:roberta")),
        audited("type:camembert", "encoders", 5, eps_finding("type:camembert")),
        failed(
            "checkpoints/broken",
            9,
            FailureKind.NO_CONFIG,
            "there is no config.json in this directory",
            "name a checkpoint's directory",
        ),
        audited(
            "checkpoints/large",
            "decoders",
            9,
            odd_blocks("checkpoints/large", (3, 7, 8, 9)),
            idle("checkpoints/large"),
        ),
        audited("checkpoints/small", "decoders", 9, odd_blocks("checkpoints/small", (3,))),
        audited("type:llama", "decoders", 10),
    )
    return AuditReport(
        versions=VERSIONS,
        policy=POLICY,
        targets=targets,
        baseline="ci/baseline.json",
        gone=(
            GoneFinding(
                code="NS106",
                target="type:llama",
                where="norm",
                found="eps 1e-05",
                expected="eps 1e-06",
            ),
        ),
    )


def clean() -> AuditReport:
    targets = (audited("type:bert", "encoders", 4), audited("type:roberta", "encoders", 4))
    return AuditReport(versions=VERSIONS, policy=POLICY, targets=targets)


def typed() -> AuditReport:
    """Targets of the command line: no policy, no family, no line."""
    bert = audited("type:bert", "", 1, replace(odd_blocks("type:bert", (1,)), family=""))
    return AuditReport(versions=VERSIONS, policy=None, targets=(replace(bert, place=None),))


def hostile() -> AuditReport:
    """Text from outside wherever there is some."""
    finding = Finding(
        code="NS106",
        severity=Severity.ERROR,
        target=HOSTILE,
        family=HOSTILE,
        where=f"*.{HOSTILE}",
        places=(f"0.{HOSTILE}", f"1.{HOSTILE}"),
        message=HOSTILE,
        found=HOSTILE,
        expected=HOSTILE,
    )
    place = Place(file=f"a b/{HOSTILE}.toml", line=3)
    found = AuditedTarget(
        target=HOSTILE,
        family=HOSTILE,
        place=place,
        facts=replace(FACTS, class_name=HOSTILE, outside=(HOSTILE,)),
        findings=(finding, replace(finding, known=True, message=f"::error::{HOSTILE}")),
        checked=("NS106",),
        unchecked=(Unchecked(code="NS301", reason=HOSTILE),),
    )
    broken = AuditedTarget(
        target=f"2{HOSTILE}",
        family=HOSTILE,
        place=place,
        failure=Failure(kind=FailureKind.CORRUPT, message=HOSTILE, hint=HOSTILE),
    )
    gone = GoneFinding(code="NS105", target=HOSTILE, where=HOSTILE, found=HOSTILE, expected=HOSTILE)
    return AuditReport(
        versions=VERSIONS,
        policy=HOSTILE,
        targets=(found, broken),
        baseline=HOSTILE,
        gone=(gone,),
        interrupted=True,
        shard=HOSTILE,
    )


def large(targets: int = 1_000, findings: int = 5) -> AuditReport:
    """Many targets, each with as many findings, no two targets alike."""
    return AuditReport(
        versions=VERSIONS,
        policy=POLICY,
        targets=tuple(
            audited(
                f"checkpoints/{number:05}",
                "encoders",
                4,
                *(
                    replace(
                        eps_finding(f"checkpoints/{number:05}"),
                        message=f"eps is {number}, and the policy expects {wanted}",
                    )
                    for wanted in range(findings)
                ),
            )
            for number in range(targets)
        ),
    )


def alike(targets: int = 1_000) -> AuditReport:
    """Many targets with one and the same finding."""
    names = [f"checkpoints/{number:05}" for number in range(targets)]
    return AuditReport(
        versions=VERSIONS,
        policy=POLICY,
        targets=tuple(audited(name, "encoders", 4, eps_finding(name)) for name in names),
    )
