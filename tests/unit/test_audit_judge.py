"""One target judged: which rules were checked, which could not be, and what a budget allows."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from golden.inspections import bert, llama
from normscope.audit.expectations import Expectation
from normscope.audit.facts import config_digest
from normscope.audit.findings import Severity
from normscope.audit.judge import judge
from normscope.audit.policy import Assignment, Place
from normscope.audit.rules import RULES
from normscope.inspection import Placement
from normscope.weights.report import WeightsLevel, WeightsReport
from specimens.measured import EVERY
from specimens.observed import with_branch

ALL = tuple(rule.code for rule in RULES)
STORED = WeightsReport(
    level=WeightsLevel.HEADERS,
    container="safetensors",
    files=1,
    file_bytes=10,
    bytes_read=1,
    parameters=(),
)


def assigned(*rules: str, **more: object) -> Assignment:
    place = Place(file="normscope.toml", line=3)
    return Assignment(
        target="type:llama",
        opened="type:llama",
        family="llamas",
        place=place,
        rules=rules,
        **more,  # type: ignore[arg-type]
    )


def test_what_was_judged_names_its_target_family_and_line() -> None:
    judged = judge(assigned("NS101", "NS107"), llama(2))
    assert (judged.target, judged.family, judged.place) == (
        "type:llama",
        "llamas",
        Place(file="normscope.toml", line=3),
    )
    assert judged.checked == ("NS101", "NS107")
    assert judged.unchecked == ()
    assert judged.findings == ()


def test_only_assigned_rules_are_checked() -> None:
    broken = replace(llama(2), blocks=(), stacks=())
    assert judge(assigned("NS101"), broken).findings == ()
    (one,) = judge(assigned("NS101", "NS107"), broken).findings
    assert (one.code, one.severity, one.family) == ("NS107", Severity.ERROR, "llamas")


def test_what_could_not_be_checked_is_told_with_its_reason() -> None:
    reasons = {each.code: each.reason for each in judge(assigned(*ALL), llama(2)).unchecked}
    stored = {"NS204", "NS301", "NS302", "NS303", "NS304", "NS305"}
    assert {
        code for code, reason in reasons.items() if reason == "no weights are at hand"
    } == stored
    measured = {code for code in ALL if code.startswith("NS4")}
    assert set(reasons) == stored | measured
    assert {reasons[code] for code in measured} == {"the policy has no [stats] input to measure on"}


def test_headers_alone_do_not_tell_values() -> None:
    judged = judge(assigned(*ALL), replace(llama(2), stored=STORED))
    told = {each.code for each in judged.unchecked if each.reason.startswith("only the headers")}
    assert told == {"NS204", "NS303", "NS304"}
    assert {"NS301", "NS302", "NS305"} <= set(judged.checked)


def test_why_nothing_was_measured_is_said_in_the_callers_words() -> None:
    (each,) = judge(assigned("NS401"), llama(2), unmeasured="it has no weights").unchecked
    assert each.reason == "it has no weights"


@pytest.mark.parametrize(("verified", "checked"), [(True, ("NS401", "NS405")), (False, ("NS401",))])
def test_outputs_that_were_not_recomputed_are_not_checked(
    verified: bool, checked: Sequence[str]
) -> None:
    statistics = replace(EVERY, verified=verified)
    assert judge(assigned("NS401", "NS405"), llama(4), statistics).checked == tuple(checked)


def test_rules_of_the_lock_file_are_left_to_it() -> None:
    judged = judge(assigned("NS501", "NS502"), llama(2))
    assert judged.checked == ()
    assert judged.unchecked == ()


@pytest.mark.parametrize(
    ("budget", "severities"),
    [
        ({}, [Severity.WARNING, Severity.WARNING]),
        ({"NS401": 1}, [Severity.NOTE, Severity.WARNING]),
        ({"NS401": 2}, [Severity.NOTE, Severity.NOTE]),
        ({"NS402": 2}, [Severity.WARNING, Severity.WARNING]),
    ],
)
def test_a_budget_turns_so_many_findings_into_notes(
    budget: dict[str, int], severities: list[Severity]
) -> None:
    first = next(item for item in EVERY.findings if item.code == "NS401")
    statistics = replace(EVERY, findings=(first, replace(first, channel=8)))
    judged = judge(assigned("NS401", budget=budget), llama(4), statistics)
    assert [one.severity for one in judged.findings] == severities


def test_findings_stand_by_code_and_then_in_order() -> None:
    made = llama(6)
    for path in ("layers.4", "layers.1"):
        made = with_branch(made, path, 0, placement=Placement.UNKNOWN)
        made = with_branch(made, path, 1, placement=Placement.NO_NORM)
    expect = Expectation(eps=1e-5)
    judged = judge(assigned("NS106", "NS107", expect=expect), made)
    assert [(one.code, one.where) for one in judged.findings] == [
        ("NS106", "layers.*.input_layernorm"),
        ("NS106", "layers.*.post_attention_layernorm"),
        ("NS107", "layers.*"),
    ]


# The facts for a lock file.


def test_facts_say_each_distinct_thing_once() -> None:
    facts = judge(assigned(), llama(32)).facts
    assert facts is not None
    (stack,) = facts.stacks
    assert (stack.path, stack.blocks) == ("layers", 32)
    assert stack.placements == ("all: attention pre-norm x + f(N(x)), mlp pre-norm x + f(N(x))",)
    assert stack.norms[0] == (
        "*.input_layernorm: RMSNorm role branch_input eps 1e-06 gain w bias no "
        "statistics float32 calls 1 blocks all"
    )
    assert len(stack.norms) == 2
    assert facts.outside == (
        "norm: RMSNorm role final eps 1e-06 gain w bias no statistics float32 calls 1 count 1",
    )
    assert facts.norm_calls == 65


def test_depth_is_one_fact_alone() -> None:
    short, long = (judge(assigned(), llama(depth)).facts for depth in (8, 9))
    assert short is not None
    assert long is not None
    assert short.stacks[0].norms == long.stacks[0].norms
    assert short.stacks[0].placements == long.stacks[0].placements


def test_an_odd_block_shows_in_the_facts() -> None:
    made = with_branch(llama(6), "layers.4", 1, placement=Placement.OTHER, formula="x + σ(N(f(x)))")
    facts = judge(assigned(), made).facts
    assert facts is not None
    assert [line.partition(":")[0] for line in facts.stacks[0].placements] == ["0-3, 5", "4"]


def test_a_config_is_told_by_its_content() -> None:
    config = {"hidden_size": 8, "eps": 1e-6}
    same = {"eps": 1e-6, "hidden_size": 8, "transformers_version": "5.24.0", "_name_or_path": "/x"}
    assert config_digest(config) == config_digest(same)
    assert config_digest(config) != config_digest({**config, "eps": 1e-5})
    assert config_digest(None) is None
    facts = judge(assigned(), bert(), config=config).facts
    assert facts is not None
    assert facts.config == config_digest(config)
    assert len(facts.config or "") == 16


def test_why_weights_were_not_read_is_said_in_the_callers_words() -> None:
    (each,) = judge(assigned("NS301"), llama(2), unread="they are pickled").unchecked
    assert each.reason == "they are pickled"
