"""Checkpoint -> module on meta."""

import json

import pytest
import torch

from normscope.checkpoint import resolve_checkpoint
from normscope.errors import FailureKind, NormscopeError
from normscope.model import build_on_meta, known_model_types

SMALL_BERT = {
    "model_type": "bert",
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "vocab_size": 50,
}
SMALL_LLAMA = {**SMALL_BERT, "model_type": "llama"}


def built(tmp_path, config, **options):
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return build_on_meta(resolve_checkpoint(str(tmp_path)), **options)


def refusal(target, **options):
    with pytest.raises(NormscopeError) as caught:
        build_on_meta(resolve_checkpoint(target), **options)
    return caught.value


def test_parameters_are_on_meta_and_buffers_hold_their_content(tmp_path):
    found = built(tmp_path, SMALL_LLAMA)
    assert {value.device.type for value in found.module.parameters()} == {"meta"}
    frequencies = found.module.rotary_emb.inv_freq
    assert frequencies.device.type == "cpu"
    assert frequencies[0] == 1.0


def test_the_model_is_in_eval_mode(tmp_path):
    assert not any(module.training for module in built(tmp_path, SMALL_BERT).module.modules())


def test_the_class_is_the_one_that_the_checkpoint_names(tmp_path):
    named = {**SMALL_BERT, "architectures": ["BertForMaskedLM"]}
    assert built(tmp_path, named).class_name == "BertForMaskedLM"


def test_a_class_that_transformers_lacks_gives_way_to_the_model_type(tmp_path):
    named = {**SMALL_BERT, "architectures": ["BertForTelepathy"]}
    assert built(tmp_path, named).class_name == "BertModel"


def test_architectures_stand_in_for_a_missing_model_type(tmp_path):
    config = {key: value for key, value in SMALL_BERT.items() if key != "model_type"}
    found = built(tmp_path, {**config, "architectures": ["BertModel"]})
    assert (found.class_name, found.model_type) == ("BertModel", "bert")


def test_tied_parameters_stay_one_and_are_counted_once(tmp_path):
    named = {**SMALL_BERT, "architectures": ["BertForMaskedLM"], "tie_word_embeddings": True}
    found = built(tmp_path, named)
    head = found.module.cls.predictions.decoder.weight
    assert head is found.module.bert.embeddings.word_embeddings.weight
    distinct = {id(value): value.numel() for value in found.module.parameters()}
    assert found.parameters == sum(distinct.values())


@pytest.mark.parametrize(
    ("config", "wanted", "expected"),
    [
        ({}, None, "float32"),
        ({"dtype": "bfloat16"}, None, "bfloat16"),
        ({"torch_dtype": "float16"}, None, "float16"),
        ({"torch_dtype": "float16"}, "float32", "float32"),
    ],
)
def test_the_dtype_is_the_checkpoints_unless_asked_for(tmp_path, config, wanted, expected):
    found = built(tmp_path, {**SMALL_LLAMA, **config}, dtype=wanted)
    assert found.dtype == expected
    assert found.module.norm.weight.dtype == getattr(torch, expected)


def test_the_default_dtype_of_torch_is_untouched(tmp_path):
    built(tmp_path, {**SMALL_LLAMA, "dtype": "bfloat16"})
    assert torch.get_default_dtype() is torch.float32


def test_experts_run_without_a_loop_over_data(tmp_path):
    config = {**SMALL_LLAMA, "model_type": "mixtral", "num_local_experts": 4}
    found = built(tmp_path, config)
    assert found.config._experts_implementation == "batched_mm"


def test_an_unknown_type_is_answered_with_the_nearest_names():
    error = refusal("type:roberto")
    assert error.kind is FailureKind.UNKNOWN_ARCHITECTURE
    assert "roberta" in error.hint
    assert "roberta" in known_model_types()


def test_a_default_config_that_does_not_build_says_why():
    error = refusal("type:esm")
    assert error.kind is FailureKind.UNKNOWN_ARCHITECTURE
    assert "the default config of EsmConfig does not build" in error.message
    assert "config.json" in error.hint


def test_the_missing_field_filled_in_makes_it_build(tmp_path):
    small = {**SMALL_BERT, "model_type": "esm", "vocab_size": 33, "pad_token_id": 1}
    assert built(tmp_path, small).class_name == "EsmModel"


def test_a_type_without_a_base_class_gets_another_of_its_own():
    assert build_on_meta(resolve_checkpoint("type:trocr")).class_name == "TrOCRForCausalLM"


def test_a_missing_package_is_named():
    error = refusal("type:dinat")
    assert error.kind is FailureKind.MISSING_DEPENDENCY
    assert "natten" in error.message


def test_the_first_of_several_base_classes_is_built():
    assert build_on_meta(resolve_checkpoint("type:funnel")).class_name == "FunnelModel"


def test_a_missing_package_is_named_as_it_is_installed():
    from normscope.model.configuration import refused

    checkpoint = resolve_checkpoint("type:anything")
    missing = ImportError("AnyModel requires the PIL library but it was not found")
    assert refused(checkpoint, "AnyModel", missing).hint == "pip install pillow"
    deeper = ValueError("outer")
    deeper.__cause__ = ModuleNotFoundError("no timm", name="timm.layers")
    assert refused(checkpoint, "AnyModel", deeper).hint == "pip install timm"


def test_code_in_the_checkpoint_is_not_run_unasked(tmp_path):
    config = {"model_type": "homemade", "auto_map": {"AutoModel": "homemade.Model"}}
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    (tmp_path / "homemade.py").write_text("raise SystemExit('it ran')", encoding="utf-8")
    error = refusal(str(tmp_path))
    assert error.kind is FailureKind.REMOTE_CODE
    assert "--trust-remote-code" in error.hint


def test_a_known_type_with_code_beside_it_is_built_from_transformers(tmp_path):
    config = {**SMALL_BERT, "auto_map": {"AutoModel": "homemade.Model"}}
    assert built(tmp_path, config).class_name == "BertModel"


def test_an_incomplete_default_is_filled_and_said(tmp_path):
    found = build_on_meta(resolve_checkpoint("type:glm4v_text"))
    assert any("rope_parameters" in note for note in found.assumed)
    small = {**SMALL_BERT, "model_type": "bert"}
    assert built(tmp_path, small).assumed == ()


FACTORIES = """
import torch
from torch import nn

def module():
    return nn.Linear(4, 4)

def with_inputs():
    return nn.Linear(4, 4), {"input": torch.ones(2, 4)}

def with_a_tensor():
    return nn.Linear(4, 4), torch.ones(2, 4)

def wrong():
    return 3

def broken():
    raise RuntimeError("no luck")

number = 3
"""


@pytest.fixture
def factories(tmp_path, monkeypatch):
    name = f"factories_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(FACTORIES, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return name


def test_a_factory_keeps_its_own_weights(factories):
    found = build_on_meta(resolve_checkpoint(f"py:{factories}:module"))
    assert found.class_name == "Linear"
    assert found.parameters == 20
    assert found.module.weight.device.type == "cpu"
    assert found.inputs is None


def test_a_factory_may_give_inputs(factories):
    by_name = build_on_meta(resolve_checkpoint(f"py:{factories}:with_inputs")).inputs
    by_place = build_on_meta(resolve_checkpoint(f"py:{factories}:with_a_tensor")).inputs
    assert by_name is not None
    assert by_place is not None
    assert (by_name[0], set(by_name[1])) == ((), {"input"})
    assert (len(by_place[0]), by_place[1]) == (1, {})


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("nothing", FailureKind.NOT_FOUND),
        ("number", FailureKind.UNKNOWN_ARCHITECTURE),
        ("wrong", FailureKind.UNKNOWN_ARCHITECTURE),
        ("broken", FailureKind.UNKNOWN_ARCHITECTURE),
    ],
)
def test_a_factory_that_gives_no_module(factories, name, kind):
    assert refusal(f"py:{factories}:{name}").kind is kind


def test_a_module_that_cannot_be_imported(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert refusal("py:not_there:factory").kind is FailureKind.NOT_FOUND
