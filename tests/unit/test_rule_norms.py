"""NS104, NS105, NS201, NS202 and NS203: what single norms are called and how they run."""

from dataclasses import replace

import pytest

from golden.inspections import bert, gemma2, llama
from normscope.audit.findings import Severity
from normscope.inspection import Inspection, NormReport
from specimens.observed import (
    ended,
    found,
    observed,
    severities,
    with_norm,
    with_norms,
    with_settings,
)

ODD = "layers.5.input_layernorm"


# NS104


def test_a_name_that_misleads_is_a_note_for_all_blocks_at_once() -> None:
    (one,) = found("NS104", llama(4))
    assert one.where == "layers.*.post_attention_layernorm"
    assert len(one.places) == 4
    assert one.severity is Severity.NOTE
    assert one.message == 'named "post", but it normalizes the input of the mlp'


def test_a_name_that_is_right_is_not() -> None:
    assert found("NS104", bert()) == []


# NS105


def test_a_norm_that_its_siblings_outrun_is_found() -> None:
    (seen,) = observed("NS105", with_norm(llama(6), ODD, calls=2))
    assert (seen.where, seen.found, seen.expected) == (ODD, "2 times", "once")


@pytest.mark.parametrize("made", [llama(4), with_norms(bert(), lambda n: replace(n, calls=12))])
def test_equally_many_runs_are_even(made: Inspection) -> None:
    assert observed("NS105", made) == []


def idle(name: str) -> NormReport:
    return replace(llama(1).norms[0], name=name, module=name, calls=0, block=None)


@pytest.mark.parametrize(
    ("name", "severity"),
    [
        ("layers.1.extra_norm", Severity.WARNING),  # its block ran and passed it by
        ("layers.1.norms.3", Severity.WARNING),  # so did it one in a list
        ("last_norm", Severity.WARNING),  # the model did
        ("layers.1.self_attn.q_norm", Severity.WARNING),  # its projections ran
        ("layers.1.crossattention.output.LayerNorm", Severity.NOTE),  # its module never ran
        ("decoder.blocks.0.norm", Severity.NOTE),
    ],
)
def test_an_idle_norm_is_worse_where_its_module_ran(name: str, severity: Severity) -> None:
    made = replace(llama(3), norms=(*llama(3).norms, idle(name)))
    seen = observed("NS105", made)
    assert [item.where for item in seen] == [name]
    assert severities("NS105", seen) == [severity]


def test_a_block_that_is_passed_by_is_no_note() -> None:
    made = llama(3)
    never = idle("layers.3.input_layernorm")
    assert severities("NS105", observed("NS105", replace(made, norms=(*made.norms, never)))) == [
        Severity.WARNING
    ]


def test_idle_norms_of_blocks_that_never_ran_are_told_once() -> None:
    names = [f"flows.{n}.dds.norms.{m}" for n in range(3) for m in range(2)]
    made = replace(llama(2), norms=(*llama(2).norms, *map(idle, names)))
    (one,) = found("NS105", made)
    assert one.where == "flows.*.dds.norms.*"
    assert one.places == tuple(names)


# NS201


def test_an_eps_that_the_config_does_not_have_is_found() -> None:
    made = with_settings(llama(3), rms_norm_eps=1e-5)
    seen = found("NS201", made)
    assert [item.where for item in seen] == [
        "layers.*.input_layernorm",
        "layers.*.post_attention_layernorm",
        "norm",
    ]
    assert {(item.found, item.expected) for item in seen} == {("eps 1e-06", "eps 1e-05")}
    assert "rms_norm_eps 1e-05" in seen[0].message


@pytest.mark.parametrize(
    "settings",
    [
        {"rms_norm_eps": 1e-6},
        {"rms_norm_eps": 9.999999974752427e-07},  # what float32 makes of it
        {"text_config__rms_norm_eps": 1e-6, "vision_config__layer_norm_eps": 1e-5},
        {},  # the config says nothing
    ],
)
def test_an_eps_of_the_config_is_right(settings: dict[str, float]) -> None:
    assert observed("NS201", with_settings(llama(3), **settings)) == []


def test_an_eps_that_is_no_number_there_and_here_is_the_configs() -> None:
    made = with_norms(llama(3), lambda norm: replace(norm, eps=float("nan")))
    assert observed("NS201", with_settings(made, rms_norm_eps=float("nan"))) == []
    assert len(observed("NS201", with_settings(made, rms_norm_eps=1e-6))) == 7


def test_a_part_of_the_config_without_eps_is_not_held_against_the_others() -> None:
    made = ended(llama(3), "norm")
    assert observed("NS201", with_settings(made, vision_config__eps=1e-5, text_config=None)) == []
    some = with_norm(made, "layers.1.input_layernorm", eps=1e-5)
    some = with_settings(some, vision_config__eps=1e-5, text_config=None)
    assert {item.where for item in observed("NS201", some)} == {
        norm.name for norm in made.norms if norm.name != "layers.1.input_layernorm"
    }


def test_kinds_that_configs_do_not_set_are_left_out() -> None:
    made = with_norm(llama(3), "norm", kind="L2Norm", eps=1e-12)
    assert observed("NS201", with_settings(made, rms_norm_eps=1e-6)) == []


def test_the_odd_one_of_a_stack_is_found_without_a_config() -> None:
    (seen,) = observed("NS201", with_norm(llama(8), ODD, eps=1e-5))
    assert (seen.where, seen.found, seen.expected) == (ODD, "eps 1e-05", "eps 1e-06")


def test_one_place_of_all_blocks_is_odd_among_the_others() -> None:
    made = with_norms(
        gemma2(), lambda n: replace(n, eps=1e-5) if "post_feedforward" in n.name else n
    )
    (one,) = found("NS201", made)
    assert one.where == "layers.*.post_feedforward_layernorm"


def test_the_final_norm_is_held_against_its_stack() -> None:
    made = with_norm(llama(3), "norm", eps=1e-5)
    assert [seen.where for seen in observed("NS201", ended(made, "norm"))] == ["norm"]
    assert observed("NS201", ended(made)) == []


def test_stacks_are_not_held_against_each_other() -> None:
    made = llama(2)
    other = replace(made.stacks[0], path="tower")
    blocks = tuple(
        replace(block, path=f"tower.{block.index}", stack="tower") for block in made.blocks
    )
    norms = tuple(
        replace(norm, name=f"tower.{norm.name[7:]}", block=f"tower.{norm.block[7:]}", eps=1e-5)
        for norm in made.norms
        if norm.block
    )
    made = replace(
        made,
        stacks=(*made.stacks, other),
        blocks=(*made.blocks, *blocks),
        norms=(*made.norms, *norms),
    )
    assert observed("NS201", made) == []


# NS202


def test_the_eps_of_bert_is_a_note_for_float16() -> None:
    (seen,) = observed("NS202", bert())
    assert (seen.where, seen.severity) == ("", Severity.NOTE)
    assert "eps 1e-12 is zero in float16" in seen.message
    assert seen.detail == "25 norm calls"  # of another depth it is the same finding


def test_norms_that_would_add_it_in_float16_are_worse_off() -> None:
    seen = observed("NS202", with_norms(bert(), lambda n: replace(n, cast="no cast")))
    assert severities("NS202", seen) == [Severity.WARNING]


@pytest.mark.parametrize("eps", [1e-5, 1e-6, 1e-7])
def test_an_eps_that_float16_can_hold_is_right_in_float32(eps: float) -> None:
    assert observed("NS202", with_norms(bert(), lambda n: replace(n, eps=eps))) == []


@pytest.mark.parametrize(
    ("eps", "dtype", "severity"),
    [
        (1e-8, "float16", [Severity.WARNING]),  # zero
        (1e-5, "float16", [Severity.NOTE]),  # subnormal
        (1e-4, "float16", []),
        (1e-6, "bfloat16", []),
        (1e-45, "float32", [Severity.NOTE]),
        (0.0, "float32", [Severity.WARNING]),
        (None, "float32", [Severity.WARNING]),
    ],
)
def test_eps_is_rounded_to_the_dtype_of_the_statistics(
    eps: float | None, dtype: str, severity: list[Severity]
) -> None:
    made = with_norm(llama(2), "norm", eps=eps, statistics_dtype=dtype)
    seen = [item for item in observed("NS202", made) if item.where == "norm"]
    assert severities("NS202", seen) == severity


def test_an_l2_norm_may_do_without_eps() -> None:
    made = with_norm(llama(2), "norm", kind="L2Norm", eps=None, eps_position="none")
    assert observed("NS202", made) == []


# NS203


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"statistics_dtype": "bfloat16"}, "statistics in half precision"),
        ({"cast": "no cast"}, "statistics in half precision"),
        ({"squares_in_half": True}, "squares before the upcast"),
    ],
)
@pytest.mark.parametrize(
    ("dtype", "severity"), [("bfloat16", Severity.WARNING), ("float32", Severity.NOTE)]
)
def test_half_precision_is_found(
    change: dict[str, object], told: str, dtype: str, severity: Severity
) -> None:
    made = with_norm(llama(2), "norm", **change)
    made = replace(made, model=replace(made.model, dtype=dtype))
    seen = observed("NS203", made)
    assert [(item.where, item.found) for item in seen] == [("norm", told)]
    assert severities("NS203", seen) == [severity]


@pytest.mark.parametrize("cast", ["before gain", "after gain", None])
def test_an_upcast_before_the_square_is_right(cast: str | None) -> None:
    made = with_norms(llama(2), lambda n: replace(n, cast=cast, squares_in_half=False))
    made = replace(made, model=replace(made.model, dtype="bfloat16"))
    assert observed("NS203", made) == []
