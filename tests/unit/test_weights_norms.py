"""Checkpoint + module -> its norms' parameters as stored."""

import math
from dataclasses import replace

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from normscope.checkpoint import resolve_checkpoint
from normscope.comparison import norm_parameters
from normscope.model import build_on_meta
from normscope.pipeline import inspect_checkpoint, inspect_module
from normscope.render.stored_remarks import stored_remarks
from normscope.weights.files import find_weight_files
from normscope.weights.gains import describe_values
from normscope.weights.judgements import stored_problems
from normscope.weights.read import read_stored_norms, read_weights
from normscope.weights.report import ParameterProblem, WeightsLevel
from normscope.weights.safetensors_folder import SafetensorsFolder
from normscope.weights.source import open_source

SMALL = {
    "vocab_size": 40,
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
}


def saved(folder, config, kind):
    torch.manual_seed(0)
    model = kind(config)
    with torch.no_grad():
        for value in model.parameters():
            if value.dim() == 1:
                value.normal_()
    model.save_pretrained(folder)
    return folder


@pytest.fixture
def bert(tmp_path):
    config = transformers.BertConfig(**SMALL)
    return saved(tmp_path, config, transformers.BertForMaskedLM)


def rewritten(folder, change):
    tensors = change(load_file(folder / "model.safetensors"))
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def report_of(folder, level=WeightsLevel.NORMS):
    checkpoint = resolve_checkpoint(str(folder))
    wanted = norm_parameters(inspect_checkpoint(str(folder)))
    return read_weights(open_source(checkpoint), build_on_meta(checkpoint).module, wanted, level)


def parameter(report, name):
    return next(item for item in report.parameters if item.name == name)


def test_every_norm_has_its_stored_tensor(bert):
    report = report_of(bert)
    assert len(report.parameters) == 12  # embeddings, two blocks of two, the head's
    assert {item.problem for item in report.parameters} == {None}
    assert all(item.values is not None for item in report.parameters)
    assert not any(item.renamed for item in report.parameters)


def test_values_are_those_of_the_file(bert):
    name = "bert.encoder.layer.1.output.LayerNorm.weight"
    stored = load_file(bert / "model.safetensors")[name]
    values = parameter(report_of(bert), name).values
    assert values.mean == pytest.approx(float(stored.double().mean()))
    assert values.largest_channel == int(stored.abs().argmax())


def test_only_headers_and_norms_are_read(bert):
    header = report_of(bert, WeightsLevel.HEADERS)
    norms = report_of(bert)
    assert all(item.values is None for item in header.parameters)
    assert norms.bytes_read - header.bytes_read == 12 * 16 * 4
    assert norms.bytes_read < norms.file_bytes / 4


def test_gamma_and_beta_are_known_by_their_old_names(bert):
    def old(tensors):
        return {
            name.replace("LayerNorm.weight", "LayerNorm.gamma").replace(
                "LayerNorm.bias", "LayerNorm.beta"
            ): value
            for name, value in tensors.items()
        }

    rewritten(bert, old)
    report = report_of(bert)
    found = parameter(report, "bert.embeddings.LayerNorm.weight")
    assert (found.stored_name, found.renamed) == ("bert.embeddings.LayerNorm.gamma", True)
    assert {item.problem for item in report.parameters} == {None}


def test_the_prefix_of_a_head_is_no_renaming_by_us(bert):
    def bare(tensors):
        return {name.removeprefix("bert."): value for name, value in tensors.items()}

    rewritten(bert, bare)
    found = parameter(report_of(bert), "bert.embeddings.LayerNorm.bias")
    assert (found.stored_name, found.problem) == ("embeddings.LayerNorm.bias", None)


def test_missing_unexpected_and_misshapen(bert):
    def broken(tensors):
        tensors.pop("bert.embeddings.LayerNorm.weight")
        tensors["bert.embeddings.LayerNorm.bias"] = torch.ones(3)
        tensors["bert.more.norm.weight"] = torch.ones(16)
        return tensors

    rewritten(bert, broken)
    report = report_of(bert)
    missing = parameter(report, "bert.embeddings.LayerNorm.weight")
    misshapen = parameter(report, "bert.embeddings.LayerNorm.bias")
    assert (missing.problem, missing.stored_name) == (ParameterProblem.MISSING, None)
    assert (misshapen.problem, misshapen.shape) == (ParameterProblem.SHAPE, (3,))
    assert misshapen.values is None
    assert report.unexpected == ("bert.more.norm.weight",)


def test_the_offset_of_a_gain_is_part_of_its_effective_value(tmp_path):
    config = transformers.GemmaConfig(**SMALL, num_key_value_heads=1, head_dim=8)
    folder = saved(tmp_path, config, transformers.GemmaForCausalLM)
    checkpoint = resolve_checkpoint(str(folder))
    wanted = norm_parameters(inspect_checkpoint(str(folder)))
    module = build_on_meta(checkpoint).module
    values = read_stored_norms(open_source(checkpoint), module, wanted).values
    stored = load_file(folder / "model.safetensors")["model.norm.weight"]
    assert torch.equal(values["model.norm.weight"].exact, stored.double() + 1)


def test_experts_that_are_joined_on_loading_hide_no_norm(tmp_path):
    config = transformers.MixtralConfig(
        **SMALL, num_key_value_heads=1, num_local_experts=2, num_experts_per_tok=1
    )
    report = report_of(saved(tmp_path, config, transformers.MixtralForCausalLM))
    assert {item.problem for item in report.parameters} == {None}
    assert report.unexpected == ()


class TestValues:
    def test_dead_outlying_and_non_finite_channels(self):
        values = torch.ones(100)
        values[3], values[7], values[8] = 0.0, 50.0, math.nan
        facts = describe_values(values)
        assert (facts.dead, facts.outliers, facts.non_finite) == (1, 1, 1)
        assert facts.largest_channel == 7

    def test_a_zero_weight_of_an_offset_gain_is_not_dead(self):
        assert describe_values(torch.zeros(4), offset=1.0).dead == 0
        assert describe_values(torch.full((4,), -1.0), offset=1.0).dead == 4

    def test_small_weights_are_lost_in_bfloat16_only_beside_an_offset(self):
        small = torch.full((4,), 1e-3)
        assert describe_values(small, offset=1.0).lost_in_bfloat16 == 4
        assert describe_values(small).lost_in_bfloat16 == 0
        assert describe_values(torch.full((4,), 0.5), offset=1.0).lost_in_bfloat16 == 0

    def test_the_channel_of_the_largest_counts_those_that_are_not_finite(self):
        assert describe_values(torch.tensor([math.inf, 1.0, 5.0])).largest_channel == 2

    def test_nothing_finite(self):
        facts = describe_values(torch.tensor([math.nan]))
        assert facts.non_finite == 1
        assert math.isnan(facts.mean)

    def test_a_scalar_gain(self):
        assert describe_values(torch.tensor(2.0)).mean == 2.0


class TwoNames(torch.nn.Module):
    """Two norms that share a gain, which a file holds once."""

    def __init__(self):
        super().__init__()
        self.first = torch.nn.LayerNorm(8)
        self.second = torch.nn.LayerNorm(8)
        self.middle = torch.nn.Linear(8, 8)
        self.second.weight = self.first.weight

    def forward(self, x):
        return self.second(x + self.middle(self.first(x)))


@pytest.mark.parametrize("kept", ["first", "second"])
def test_tied_parameters_are_stored_once_and_none_is_missing(tmp_path, kept):
    module = TwoNames()
    other = {"first": "second", "second": "first"}[kept]
    with torch.no_grad():
        module.first.weight.normal_(1.0, 0.1)
        for norm in (module.first, module.second):
            norm.bias.normal_()
    tensors = {k: v.clone() for k, v in module.state_dict().items() if k != f"{other}.weight"}
    save_file(tensors, tmp_path / "model.safetensors")
    inspection = inspect_module(module, torch.randn(1, 3, 8))
    assert {norm.name for norm in inspection.norms} == {"first", "second"}
    source = SafetensorsFolder("here", find_weight_files("here", tmp_path))
    report = read_weights(source, module, norm_parameters(inspection), WeightsLevel.NORMS)
    assert {item.problem for item in report.parameters} == {None}
    gain = parameter(report, "first.weight")
    assert gain.stored_name == f"{kept}.weight"
    assert gain.tied_to == (None if kept == "first" else "second.weight")
    assert not gain.renamed
    assert not list(stored_problems(report))
    remarks = list(stored_remarks(replace(inspection, stored=report)))
    assert remarks == ["first.weight is one parameter of first and second"]


def test_the_remark_on_tied_parameters_is_not_made_of_others(bert):
    inspection = replace(inspect_checkpoint(str(bert)), stored=report_of(bert))
    assert not [remark for remark in stored_remarks(inspection) if "one parameter" in remark]
