"""Stored norm parameters -> what is wrong with them, each kind beside a near miss."""

import math
import subprocess
import sys

import pytest
import torch

from normscope.weights.gains import describe_values
from normscope.weights.judgements import (
    StoredProblem,
    StoredProblemKind,
    differing_eps,
    stored_problems,
)
from normscope.weights.report import (
    ParameterProblem,
    StoredParameter,
    WeightsLevel,
    WeightsReport,
)

VARIED = torch.linspace(0.5, 1.5, 16)


def stored(name="norm.weight", values=VARIED, *, offset=0.0, **facts):
    usual = {
        "name": name,
        "is_gain": True,
        "stored_name": name,
        "file": "model.safetensors",
        "dtype": "float32",
        "shape": (16,),
        "model_shape": (16,),
        "values": None if values is None else describe_values(values, offset=offset),
    }
    return StoredParameter(**(usual | facts))


def report(*parameters, container="safetensors", **facts):
    return WeightsReport(
        level=WeightsLevel.NORMS,
        container=container,
        files=1,
        file_bytes=100,
        bytes_read=10,
        parameters=parameters,
        **facts,
    )


def problems(*parameters, **facts):
    return list(stored_problems(report(*parameters, **facts)))


def only(*parameters, **facts):
    (found,) = problems(*parameters, **facts)
    return found


def changed(index, value, values=VARIED):
    values = values.clone()
    values[index] = value
    return values


def test_a_whole_parameter_has_no_problem():
    bias = stored("norm.bias", VARIED - 1, is_gain=False)
    assert problems(stored(), bias) == []


def test_a_parameter_that_is_missing():
    missing = stored(values=None, stored_name=None, shape=None, problem=ParameterProblem.MISSING)
    assert only(missing) == StoredProblem(
        kind=StoredProblemKind.MISSING,
        name="norm.weight",
        message="missing from the weights, and filled with fresh values on loading",
        found="no stored tensor",
        expected="a stored tensor",
    )


def test_another_shape():
    found = only(stored(values=None, shape=(4, 2), problem=ParameterProblem.SHAPE))
    assert (found.kind, found.found, found.expected) == ("shape", "4×2", "16")


def test_whole_numbers():
    found = only(stored(values=None, dtype="int32"))
    assert (found.kind, found.found) == ("whole_numbers", "int32")
    assert problems(stored(values=None, dtype="int32"), quantized=1) == []


def test_what_the_model_does_not_read():
    found = only(stored(), unexpected=("extra.weight",))
    assert (found.kind, found.name) == ("unexpected", "extra.weight")


def test_a_name_that_is_only_read_by_a_renaming():
    found = only(stored("norm.weight", stored_name="norm.gamma"))
    assert (found.kind, found.name, found.found) == ("renamed", "norm.weight", "norm.gamma")


@pytest.mark.parametrize(
    "facts",
    [
        {"stored_name": "base.norm.weight"},
        {"name": "base.norm.weight", "stored_name": "norm.weight"},
        {"stored_name": "other.weight", "tied_to": "other.weight"},
    ],
)
def test_a_prefix_and_a_tied_tensor_are_no_renaming(facts):
    assert problems(stored(**facts)) == []


def test_a_format_with_names_of_its_own_renames_nothing():
    assert problems(stored(stored_name="blk.0.attn_norm.weight"), container="gguf") == []


CENTRES = [(0.0, 1.0), (1.0, 0.0), (0.4, 0.0), (3.0, 0.0), (-1.0, 0.0), (2.0, 1.0), (-0.8, 1.0)]
"""Where gains may be, and what the norms add to them."""


class TestOffset:
    @pytest.mark.parametrize(
        ("centre", "offset", "words"),
        [
            (1.0, 1.0, "perhaps they hold it already"),
            (-1.0, 1.0, "taken off twice"),
            (0.0, 0.0, "an offset of 1 is missing"),
            (2.0, 0.0, "added twice"),
        ],
    )
    def test_gains_around_another_centre(self, centre, offset, words):
        gains = [stored(f"{n}.weight", VARIED - 1 + centre, offset=offset) for n in range(3)]
        found = only(*gains)
        assert (found.kind, found.name) == ("offset", "")
        assert words in found.message
        assert found.expected == f"centred near {1 - offset:g}"

    @pytest.mark.parametrize(("centre", "offset"), CENTRES)
    def test_gains_where_they_may_be(self, centre, offset):
        assert problems(stored(values=VARIED - 1 + centre, offset=offset)) == []

    def test_a_single_norm_lies_anywhere(self):
        small = stored("first.weight", VARIED - 1)
        assert problems(small, stored("a.weight"), stored("b.weight")) == []

    def test_gains_without_a_number_have_no_centre(self):
        lost = stored("lost.weight", torch.full((16,), math.nan), offset=1.0)
        kinds = [p.kind.value for p in problems(lost, stored("a.weight", VARIED, offset=1.0))]
        assert kinds == ["offset", "non_finite"]

    def test_a_bias_around_zero_is_as_it_should_be(self):
        assert problems(stored(), stored("norm.bias", VARIED - 1, is_gain=False)) == []


class TestValues:
    @pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
    @pytest.mark.parametrize("is_gain", [True, False])
    def test_what_is_no_number(self, value, is_gain):
        found = only(stored(values=changed(3, value), is_gain=is_gain))
        assert (found.kind, found.found) == ("non_finite", "1 of 16 values")

    def test_nothing_but_nan(self):
        found = only(stored(values=torch.full((16,), math.nan)))
        assert found.kind == "non_finite"

    def test_a_gain_of_zero_everywhere(self):
        kinds = [p.kind.value for p in problems(stored(values=torch.zeros(16)))]
        assert kinds == ["offset", "all_zero"]
        effective = stored(values=torch.full((16,), -1.0), offset=1.0)
        assert [p.kind.value for p in problems(effective)] == ["offset", "all_zero"]

    def test_one_value_everywhere(self):
        found = only(stored(values=torch.ones(16)))
        assert found.message == "a gain of 1 in every channel, as before training"
        found = only(stored(values=torch.zeros(16), offset=1.0))
        assert (found.kind, found.found) == ("constant", "1 in all 16 channels")
        found = only(stored(values=torch.full((16,), 3.7)))
        assert found.message == "a gain of 3.7 in every channel"
        found = only(stored(values=torch.zeros(16), is_gain=False))
        assert found.message == "a bias of 0 in every channel, as before training"

    def test_a_gain_of_a_single_value_is_not_constant(self):
        assert problems(stored(values=torch.tensor(0.7), shape=(), model_shape=())) == []

    def test_channels_that_are_switched_off(self):
        found = only(stored(values=changed(3, 0.0)))
        assert (found.kind, found.found) == ("dead_channels", "1 of 16 channels")
        assert problems(stored(values=changed(3, 1e-3))) == []
        assert problems(stored(values=changed(3, 0.0, VARIED - 1), is_gain=False)) == []

    def test_a_channel_that_stands_out(self):
        found = only(stored(values=changed(5, 40.0)))
        assert (found.kind, found.found) == (
            "outliers",
            "1 of 16 channels, the largest is channel 5",
        )
        assert problems(stored(values=changed(5, 4.0))) == []


def test_an_eps_that_no_norm_runs_with():
    named = report(stored(), stated_eps=(1e-5,))
    (found,) = differing_eps(named, [1e-6, None, 1e-12])
    assert (found.kind, found.found, found.expected) == ("eps", "1e-12, 1e-06", "1e-05")
    as_float32 = struct_float32(1e-5)
    assert as_float32 != 1e-5
    assert list(differing_eps(named, [as_float32, 1e-6])) == []
    assert list(differing_eps(named, [None])) == []


def struct_float32(value):
    return float(torch.tensor(value, dtype=torch.float32))


def test_judging_needs_no_torch():
    program = (
        "import sys; import normscope.weights.judgements; "
        "assert not {'torch', 'transformers'} & set(sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
