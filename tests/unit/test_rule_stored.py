"""NS204 and NS301 to NS305: what a checkpoint's files say of the norms' parameters."""

from dataclasses import replace

import pytest

from golden.inspections import gemma2, llama
from normscope.audit.findings import Severity
from normscope.inspection import Inspection
from normscope.weights.report import (
    ParameterProblem,
    StoredParameter,
    ValueFacts,
    WeightsLevel,
    WeightsReport,
)
from specimens.observed import found, observed, severities, with_norm, with_norms

FINE = ValueFacts(
    count=64,
    mean=0.9,
    spread=0.1,
    minimum=0.5,
    maximum=1.5,
    non_finite=0,
    dead=0,
    outliers=0,
    largest_channel=3,
    offset=0.0,
    lost_in_bfloat16=0,
    bfloat16_error=0.001,
)


def parameter(name: str, **changes: object) -> StoredParameter:
    whole = StoredParameter(
        name=name,
        is_gain=True,
        stored_name=name,
        file="model.safetensors",
        dtype="float32",
        shape=(64,),
        model_shape=(64,),
        values=FINE,
    )
    return replace(whole, **changes)  # type: ignore[arg-type]


def stored(made: Inspection, *changed: StoredParameter, **more: object) -> Inspection:
    """Give the inspection a report in which all parameters are fine but the changed ones."""
    names = {item.name for item in changed}
    assert names <= {norm.weight for norm in made.norms}
    fine = [parameter(norm.weight) for norm in made.norms if norm.weight not in names]
    report = WeightsReport(
        level=WeightsLevel.NORMS,
        container="safetensors",
        files=1,
        file_bytes=1000,
        bytes_read=100,
        parameters=(*changed, *fine),
    )
    return replace(made, stored=replace(report, **more))  # type: ignore[arg-type]


def valued(name: str, **changes: object) -> StoredParameter:
    return parameter(name, values=replace(FINE, **changes))  # type: ignore[arg-type]


GAINS = [f"layers.{n}.input_layernorm.weight" for n in range(4)]
STORED_RULES = ["NS301", "NS302", "NS303", "NS304", "NS305"]


@pytest.mark.parametrize("code", [*STORED_RULES, "NS204"])
def test_a_sound_checkpoint_has_nothing(code: str) -> None:
    assert observed(code, stored(llama(4))) == []
    assert observed(code, llama(4)) == []


def test_a_missing_gain_is_an_error_told_once_for_all_blocks() -> None:
    missing = [
        parameter(name, stored_name=None, problem=ParameterProblem.MISSING, values=None)
        for name in GAINS
    ]
    (one,) = found("NS301", stored(llama(4), *missing))
    assert one.where == "layers.*.input_layernorm.weight"
    assert one.places == tuple(GAINS)
    assert one.severity is Severity.ERROR


def test_another_shape_is_an_error() -> None:
    wrong = parameter(GAINS[1], shape=(32,), problem=ParameterProblem.SHAPE)
    made = stored(llama(4), wrong)
    (one,) = found("NS302", made)
    assert one.severity is Severity.ERROR
    assert one.message.endswith(": 32")
    assert observed("NS301", made) == []


@pytest.mark.parametrize("is_found", [True, False])
def test_a_norm_that_nothing_reads_is_told_apart_from_other_tensors(is_found: bool) -> None:
    name = "layers.0.thing.weight"
    made = stored(llama(4), unexpected=(name,), unread_norms=(name,) * is_found)
    seen = observed("NS302", made)
    assert [item.where for item in seen] == [name] * is_found
    assert severities("NS302", seen) == [Severity.WARNING] * is_found


@pytest.mark.parametrize(
    ("dtype", "more", "count"),
    [
        ("int32", {}, 1),
        ("uint8", {}, 1),
        ("bool", {}, 1),
        ("float16", {}, 0),
        ("float8_e4m3fn", {}, 0),
        ("int8", {"quantized": 7}, 0),  # of a known method: what it means is not its number
    ],
)
def test_gains_in_whole_numbers_are_an_error(dtype: str, more: dict[str, int], count: int) -> None:
    seen = found("NS302", stored(llama(4), *(parameter(n, dtype=dtype) for n in GAINS), **more))
    assert [(one.severity, one.places, one.detail) for one in seen] == [
        (Severity.ERROR, tuple(GAINS), dtype)
    ] * count


@pytest.mark.parametrize(
    ("offset", "mean", "count"),
    [
        (1.0, 1.0, 1),  # the gains in effect are near 2
        (1.0, -1.0, 1),  # near 0
        (1.0, 0.0, 0),
        (0.0, 0.0, 1),
        (0.0, 2.0, 1),
        (0.0, 1.0, 0),
    ],
)
def test_gains_centred_where_their_form_is_not(offset: float, mean: float, count: int) -> None:
    made = gemma2()
    all_of_them = [
        valued(norm.weight, offset=offset, mean=mean) for norm in made.norms if norm.weight
    ]
    seen = observed("NS303", stored(made, *all_of_them))
    assert len(seen) == count
    assert severities("NS303", seen) == [Severity.ERROR] * count


@pytest.mark.parametrize(
    ("values", "told", "severity"),
    [
        ({"non_finite": 2}, "non finite", Severity.ERROR),
        ({"minimum": 0.0, "maximum": 0.0, "mean": 0.0}, "all zero", Severity.WARNING),
        ({"minimum": 1.0, "maximum": 1.0, "mean": 1.0}, "constant", Severity.NOTE),
        ({"dead": 3}, "dead channels", Severity.NOTE),
        ({"outliers": 1}, "outliers", Severity.NOTE),
    ],
)
def test_implausible_values(values: dict[str, float], told: str, severity: Severity) -> None:
    seen = observed("NS304", stored(llama(4), valued(GAINS[2], **values)))
    assert [(item.where, item.found) for item in seen] == [(GAINS[2], told)]
    assert severities("NS304", seen) == [severity]


def test_figures_that_differ_from_block_to_block_do_not_part_findings() -> None:
    dead = [valued(name, dead=number) for number, name in enumerate(GAINS, start=1)]
    (one,) = found("NS304", stored(llama(4), *dead))
    assert len(one.places) == 4
    assert one.message.endswith(": 1 of 64 channels at the first place")
    assert one.found == "dead channels"


def test_a_renamed_tensor_is_a_note_with_both_names() -> None:
    old = [
        parameter(name, stored_name=name.replace("input_layernorm.weight", "norm.gamma"))
        for name in GAINS
    ]
    (one,) = found("NS305", stored(llama(4), *old))
    assert one.severity is Severity.NOTE
    assert "layers.0.norm.gamma" in one.message
    assert len(one.places) == 4


def test_a_prefix_of_a_head_is_no_renaming() -> None:
    assert (
        observed("NS305", stored(llama(4), parameter(GAINS[0], stored_name=f"model.{GAINS[0]}")))
        == []
    )


# NS204


@pytest.mark.parametrize(
    ("dtype", "severity"), [("bfloat16", Severity.WARNING), ("float32", Severity.NOTE)]
)
def test_a_small_w_is_lost_where_the_sum_is_made_in_bfloat16(
    dtype: str, severity: Severity
) -> None:
    made = with_norms(gemma2(), lambda norm: replace(norm, gain_dtype=dtype))
    name = made.norms[3].weight
    lost = valued(name, offset=1.0, mean=0.0, lost_in_bfloat16=5, bfloat16_error=0.004)
    seen = observed("NS204", stored(made, lost))
    assert [(item.where, item.detail) for item in seen] == [
        (made.norms[3].name, "5 of 64 channels, relative error up to 0.004")
    ]
    assert severities("NS204", seen) == [severity]


def test_norms_that_lose_differently_many_channels_are_told_alike() -> None:
    made = with_norms(gemma2(), lambda norm: replace(norm, gain_dtype="float32"))
    few, many = (
        valued(norm.weight, offset=1.0, mean=0.0, lost_in_bfloat16=lost, bfloat16_error=0.004)
        for norm, lost in zip(made.norms[2:4], (1, 5), strict=True)
    )
    messages = {one.message for one in found("NS204", stored(made, few, many))}
    assert len(messages) == 1
    assert messages.pop().endswith("up to 5 of 64 channels, relative error up to 0.004")


@pytest.mark.parametrize("offset", [0.0, 1.0])
def test_a_gain_that_keeps_its_w_is_right(offset: float) -> None:
    kept = valued(GAINS[0], offset=offset, lost_in_bfloat16=0)
    assert observed("NS204", stored(llama(4), kept)) == []


# NS201 of a file that names an eps


@pytest.mark.parametrize(("eps", "count"), [(1e-5, 1), (9.999999974752427e-07, 0)])
def test_the_eps_that_a_file_names_is_held_against_the_norms(eps: float, count: int) -> None:
    seen = observed("NS201", stored(llama(4), stated_eps=(eps,)))
    assert [item.where for item in seen] == [""] * count
    assert len(observed("NS201", with_norm(stored(llama(4)), "norm", eps=1e-6 + 1e-13))) == 0
