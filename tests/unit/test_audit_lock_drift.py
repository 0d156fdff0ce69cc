"""Drift: one observation for each fact that is otherwise than it was locked."""

from dataclasses import replace

import pytest

from golden.facts import FACTS, POST_MLP, STACK, with_stack
from golden.inspections import llama
from normscope.audit.drift import drift
from normscope.audit.facts import facts_of
from normscope.audit.findings import Severity
from normscope.audit.report import TargetFacts


def seen(now: TargetFacts, locked: TargetFacts = FACTS) -> list[tuple[str, str]]:
    return [(each.where, each.message) for each in drift(locked, now)]


def test_of_nothing():
    assert seen(FACTS) == []


@pytest.mark.parametrize(
    ("now", "where", "message"),
    [
        (
            with_stack(norms=(STACK.norms[0].replace("1e-06", "1e-05"), STACK.norms[1])),
            "layers.*.input_layernorm",
            "eps was 1e-06 in the lock file, and is 1e-05",
        ),
        (
            with_stack(norms=(STACK.norms[0], STACK.norms[1].replace("RMSN", "LayerN"))),
            "layers.*.mlp: norm",
            "kind was RMSNorm in the lock file, and is LayerNorm",
        ),
        (
            with_stack(norms=(STACK.norms[0],)),
            "layers.*.mlp: norm",
            "norm was RMSNorm eps 1e-06 gain w in the lock file, and is none",
        ),
        (
            with_stack(norms=(*STACK.norms, "*.new: RMSNorm")),
            "layers.*.new",
            "norm was none in the lock file, and is RMSNorm",
        ),
        (
            with_stack(norms=(STACK.norms[0] + " bias", STACK.norms[1])),
            "layers.*.input_layernorm",
            "norm was RMSNorm eps 1e-06 gain w in the lock file, and is "
            "RMSNorm eps 1e-06 gain w bias",
        ),
        (
            replace(with_stack(placements=(POST_MLP,)), placement="mixed"),
            "layers",
            "placement was mlp pre-norm x + f(N(x)) in the lock file, and is "
            "mlp post-norm N(x + f(x))",
        ),
        (
            with_stack(placements=("0: mlp a", "1: mlp b")),
            "layers",
            f"placement was {STACK.placements[0]} in the lock file, and is 0: mlp a; 1: mlp b",
        ),
        (
            replace(FACTS, placement="mixed"),
            "",
            "placement was pre-norm in the lock file, and is mixed",
        ),
        (with_stack(blocks=3), "layers", "count of blocks was 2 in the lock file, and is 3"),
        (
            replace(FACTS, stacks=()),
            "layers",
            f"stack was 2 blocks, {STACK.placements[0]} in the lock file, and is none",
        ),
        (
            replace(FACTS, outside=("norm: RMSNorm eps 1e-06 gain 1+w",)),
            "norm",
            "gain was w in the lock file, and is 1+w",
        ),
        (replace(FACTS, class_name="B"), "", "class was LlamaModel in the lock file, and is B"),
        (replace(FACTS, dtype="f16"), "", "dtype was float32 in the lock file, and is f16"),
        (
            replace(FACTS, parameters=7),
            "",
            "count of parameters was 1000 in the lock file, and is 7",
        ),
        (
            replace(FACTS, norm_calls=4),
            "",
            "count of norm calls was 5 in the lock file, and is 4",
        ),
        (
            replace(FACTS, model_type=None),
            "",
            "model type was llama in the lock file, and is none",
        ),
    ],
)
def test_of_one_fact(now, where, message):
    assert seen(now) == [(where, message)]
    (found,) = drift(FACTS, now)
    assert found.severity is None


def test_of_two_facts_of_one_norm():
    now = with_stack(norms=("*.input_layernorm: RMSNorm eps 1 gain 1+w", STACK.norms[1]))
    assert [each.found for each in drift(FACTS, now)] == ["eps 1", "gain 1+w"]
    assert [each.expected for each in drift(FACTS, now)] == ["eps 1e-06", "gain w"]


def test_of_some_blocks():
    locked = with_stack(norms=("*.n: RMSNorm eps 1e-06 gain w blocks all",))
    some = ("*.n: RMSNorm eps 1e-06 gain w blocks 31", "*.n: RMSNorm eps 1e-05 gain w blocks 1")
    message = (
        "norm was eps 1e-06 blocks all in the lock file, and is "
        "eps 1e-06 blocks 31 and eps 1e-05 blocks 1"
    )
    assert seen(with_stack(norms=some), locked) == [("layers.*.n", message)]


def test_of_one_block_among_unlike_ones():
    locked, now = (with_stack(placements=("0: a", f"1: {x}")) for x in "bc")
    message = "placement was 1: b in the lock file, and is 1: c"
    assert seen(now, locked) == [("layers", message)]


def test_norms_at_one_place_in_another_order_are_none():
    locked = with_stack(norms=("*.n: RMSNorm eps 1 gain w", "*.n: RMSNorm eps 2 gain w"))
    now = with_stack(norms=tuple(reversed(locked.stacks[0].norms)))
    assert seen(now, locked) == []


def test_of_a_real_fact():
    """The words are those of `facts_of`: each norm's facts can be told apart."""
    made = llama(2)
    norms = [replace(each, eps=1e-5) for each in made.norms]
    found = drift(facts_of(made), facts_of(replace(made, norms=tuple(norms))))
    assert [(each.where, each.found) for each in found] == [
        ("layers.*.input_layernorm", "eps 1e-05"),
        ("layers.*.post_attention_layernorm", "eps 1e-05"),
        ("norm", "eps 1e-05"),
    ]


def test_a_revision_alone_is_a_note():
    (found,) = drift(FACTS, replace(FACTS, revision="v2"))
    tail = ", and nothing else changed"
    assert found.message == f"revision was none in the lock file, and is v2{tail}"
    assert found.severity is Severity.NOTE


def test_a_config_that_changed_with_a_fact_is_a_note_beside_it():
    fact, config = drift(FACTS, replace(FACTS, dtype="bfloat16", config="f" * 16))
    assert (fact.severity, config.severity) == (None, Severity.NOTE)
    assert (
        config.message == f"config digest was 0123456789abcdef in the lock file, and is {'f' * 16}"
    )
