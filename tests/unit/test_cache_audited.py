"""Which judged answers are kept, and what makes the next run judge anew."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from golden.inspections import bert
from normscope.audit.expectations import Expectation
from normscope.audit.failed import failed_target
from normscope.audit.findings import Finding, Severity
from normscope.audit.policy import Assignment, Place
from normscope.audit.report import AuditedTarget, StackFacts, TargetFacts, Unchecked
from normscope.cache import keep_audited, keep_inspection, recall_audited
from normscope.errors import FailureKind
from normscope.graph import Graph, Node, Source
from normscope.limits import Limits

PLACE = Place(file="normscope.toml", line=3)
ASSIGNED = Assignment(
    target="a",
    opened="./a",
    family="f",
    place=PLACE,
    expect=Expectation(eps=1e-6, stacks={"layers": Expectation(gain="w")}),
    rules=("NS101", "NS106"),
    budget={"NS401": 2},
)
STACK = StackFacts(path="layers", blocks=2, placements=("all: x",), norms=("*.n: RMSNorm",))
FACTS = TargetFacts(
    class_name="C",
    model_type=None,
    revision=None,
    config="0f",
    dtype="float32",
    parameters=3,
    placement="pre-norm",
    stacks=(STACK,),
    outside=(),
    norm_calls=2,
)
FOUND = Finding(
    code="NS106",
    severity=Severity.ERROR,
    target="a",
    family="f",
    where="layers.*",
    places=("layers.0", "layers.1"),
    message="eps is 1e-05",
)
JUDGED = AuditedTarget(
    target="a",
    family="f",
    place=PLACE,
    facts=FACTS,
    findings=(FOUND,),
    checked=("NS106",),
    unchecked=(Unchecked(code="NS101", reason="none"),),
)
USUAL = Limits()


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """The code that ran; the inspection of it is kept."""
    file = tmp_path / "modeling.py"
    file.write_text("x + 1")
    node = Node(index=0, operation="add", source=Source(file=str(file), line=1, function="f"))
    keep_inspection("k", bert(), [Graph(nodes=(node,), modules={})])
    return file


def recalled(
    assignment: Assignment = ASSIGNED, key: str = "k", limits: Limits = USUAL
) -> AuditedTarget | None:
    return recall_audited(key, assignment, limits, None)


def keep(audited: AuditedTarget) -> None:
    keep_audited("k", ASSIGNED, USUAL, audited, None)


@pytest.mark.usefixtures("source")
def test_an_answer_comes_back_whole() -> None:
    assert recalled() is None
    keep(JUDGED)
    assert recalled() == JUDGED


@pytest.mark.usefixtures("source")
@pytest.mark.parametrize(
    "other",
    [
        replace(ASSIGNED, target="b"),
        replace(ASSIGNED, opened="b"),
        replace(ASSIGNED, family="g"),
        replace(ASSIGNED, rules=("NS101",)),
        replace(ASSIGNED, budget={"NS401": 3}),
        replace(ASSIGNED, expect=Expectation(eps=1e-5)),
        replace(ASSIGNED, expect=replace(ASSIGNED.expect, stacks={})),
    ],
)
def test_what_it_is_held_against_takes_part(other: Assignment) -> None:
    keep(JUDGED)
    assert recalled(other) is None
    assert recalled(key="another inspection") is None


@pytest.mark.usefixtures("source")
def test_the_line_of_the_policy_takes_none() -> None:
    keep(JUDGED)
    moved = replace(PLACE, line=9)
    assert recalled(replace(ASSIGNED, place=moved)) == replace(JUDGED, place=moved)


def test_it_is_forgotten_with_the_code_that_ran(source: Path) -> None:
    keep(JUDGED)
    source.write_text("x + N(x)")
    assert recalled() is None


def test_without_a_kept_inspection_nothing_is_kept() -> None:
    keep(JUDGED)
    assert recalled() is None


@pytest.mark.parametrize(
    ("kind", "hint", "kept"),
    [
        (FailureKind.UNKNOWN_ARCHITECTURE, "", True),
        (FailureKind.REMOTE_CODE, "", True),
        (FailureKind.TOO_LARGE, "let it have more: --max-modules N", True),
        (FailureKind.TOO_LARGE, "let it have more: --timeout SECONDS", False),
        (FailureKind.TOO_LARGE, "", False),
        (FailureKind.OUT_OF_MEMORY, "", False),
        (FailureKind.INTERNAL, "", False),
        (FailureKind.OFFLINE, "", False),
        (FailureKind.GATED, "", False),
        (FailureKind.NOT_FOUND, "", False),
    ],
)
def test_only_a_failure_that_would_come_again_is_kept(
    kind: FailureKind, hint: str, kept: bool
) -> None:
    failed = failed_target(ASSIGNED, kind, "./a: no", hint)
    assert failed.failure is not None
    assert failed.failure.message == "no"
    keep(failed)
    assert recalled() == (failed if kept else None)


def test_a_failure_is_of_its_limits() -> None:
    keep(failed_target(ASSIGNED, FailureKind.TOO_LARGE, "no", "--max-modules N"))
    assert recalled() is not None
    assert recalled(limits=Limits(modules=300_000)) is None


def test_a_failure_is_forgotten_with_the_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("normscope.cache.audited._library", lambda: str(tmp_path))
    keep(failed_target(ASSIGNED, FailureKind.UNKNOWN_ARCHITECTURE, "no"))
    assert recalled() is not None
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "modeling_new.py").write_text("")
    assert recalled() is None


def test_another_folder_is_another_cache(tmp_path: Path) -> None:
    failed = failed_target(ASSIGNED, FailureKind.REMOTE_CODE, "no")
    keep_audited("k", ASSIGNED, USUAL, failed, tmp_path / "own")
    assert recalled() is None
    assert recall_audited("k", ASSIGNED, USUAL, tmp_path / "own") == failed
    assert not (Path(os.environ["XDG_CACHE_HOME"]) / "normscope").exists()
