"""Checkpoint -> module on meta."""

import json
import tomllib
from pathlib import Path

import pytest
import torch

from normscope.checkpoint import resolve_checkpoint
from normscope.errors import FailureKind, NormscopeError
from normscope.model import build_on_meta, known_model_types
from normscope.model.packages import how_to_install

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


def test_a_class_of_a_part_gets_the_config_of_that_part(tmp_path):
    text = {key: value for key, value in SMALL_LLAMA.items() if key != "model_type"}
    whole = {"model_type": "qwen2_vl", "text_config": {**text, "num_key_value_heads": 2}}
    named = {**whole, "architectures": ["Qwen2VLTextModel"]}
    found = built(tmp_path, named)
    assert found.class_name == "Qwen2VLTextModel"
    assert found.module.config.hidden_size == 32


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
    # Where transformers has no such choice, the loop is over modules and the trace runs it.
    chosen = "batched_mm" if hasattr(type(found.config), "_experts_implementation") else None
    assert getattr(found.config, "_experts_implementation", None) == chosen


def test_an_unknown_type_is_answered_with_the_nearest_names():
    error = refusal("type:roberto")
    assert error.kind is FailureKind.UNKNOWN_ARCHITECTURE
    assert "roberta" in error.hint
    assert "roberta" in known_model_types()


def test_a_default_config_that_does_not_build_says_why():
    error = refusal("type:esm")
    assert error.kind is FailureKind.UNKNOWN_ARCHITECTURE
    assert "the default config of EsmModel does not build" in error.message
    assert "nn.Embedding(config.vocab_size" in error.message  # the line that wants the field
    assert "config.json" in error.hint


def test_the_missing_field_filled_in_makes_it_build(tmp_path):
    small = {**SMALL_BERT, "model_type": "esm", "vocab_size": 33, "pad_token_id": 1}
    assert built(tmp_path, small).class_name == "EsmModel"


def test_a_type_without_a_base_class_gets_another_of_its_own():
    assert build_on_meta(resolve_checkpoint("type:trocr")).class_name == "TrOCRForCausalLM"


WITHOUT_TIMM = [
    "conditional_detr",
    "dab-detr",
    "deformable_detr",
    "detr",
    "edgetam",
    "fast_vlm",
    "gemma3n",
    "omdet-turbo",
    "pe_video",
    "perception_lm",
    "table-transformer",
    "timm_backbone",
    "timm_wrapper",
]
OTHER_PACKAGES = [
    ("higgs_audio_v2_tokenizer", "torchaudio", "pip install 'normscope[audio]'"),
    ("dinat", "natten", "pip install 'natten<0.20'"),
    ("layoutlmv2", "detectron2", "from its source"),
]


@pytest.fixture
def no_packages(monkeypatch):
    """Hide the packages of the extras, installed or not, from transformers."""
    from transformers.utils import import_utils

    absent = {"timm", "vision", "torchaudio", "natten", "detectron2"}
    for name, (_, message) in list(import_utils.BACKENDS_MAPPING.items()):
        if name in absent:
            monkeypatch.setitem(import_utils.BACKENDS_MAPPING, name, (lambda: False, message))


@pytest.mark.usefixtures("no_packages")
@pytest.mark.parametrize("name", WITHOUT_TIMM)
def test_a_type_that_needs_timm_names_the_extra(name):
    error = refusal(f"type:{name}")
    assert error.kind is FailureKind.MISSING_DEPENDENCY
    assert "timm" in error.message
    assert error.hint == "pip install 'normscope[vision]'"


@pytest.mark.usefixtures("no_packages")
@pytest.mark.parametrize(("name", "package", "hint"), OTHER_PACKAGES)
def test_a_missing_package_is_named_and_how_to_get_it(name, package, hint):
    error = refusal(f"type:{name}")
    assert error.kind is FailureKind.MISSING_DEPENDENCY
    assert package in error.message
    assert hint in error.hint


def test_the_extras_that_are_named_exist():
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8"))
    declared = project["project"]["optional-dependencies"]
    for package in ("timm", "pillow", "torchvision", "torchaudio"):
        extra = how_to_install([package]).partition("[")[2].partition("]")[0]
        assert any(line.startswith(package) for line in declared[extra])


def test_the_first_of_several_base_classes_is_built():
    assert build_on_meta(resolve_checkpoint("type:funnel")).class_name == "FunnelModel"


def test_a_missing_package_is_named_as_it_is_installed():
    from normscope.model.configuration import refused

    checkpoint = resolve_checkpoint("type:anything")
    missing = ImportError("AnyModel requires the PIL library but it was not found")
    assert refused(checkpoint, "AnyModel", missing).hint == "pip install 'normscope[vision]'"
    deeper = ValueError("outer")
    deeper.__cause__ = ModuleNotFoundError("no cv2", name="cv2.gapi")
    assert refused(checkpoint, "AnyModel", deeper).hint == "pip install opencv-python"


def test_numbers_that_json_has_no_word_for_are_read(tmp_path):
    saved = {"model_type": "bamba", "time_step_limit": [0.0, {"__float__": "Infinity"}]}
    small = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "vocab_size": 50}
    heads = {"mamba_n_heads": 4, "mamba_d_head": 16, "intermediate_size": 32}
    found = built(tmp_path, {**saved, **small, **heads})
    assert list(found.config.time_step_limit) == [0.0, float("inf")]


def test_a_class_that_is_not_exported_is_found_beside_its_config():
    found = build_on_meta(resolve_checkpoint("type:voxtral_realtime_text"))
    assert found.class_name == "VoxtralRealtimeTextModel"


def test_the_parts_of_a_default_config_are_joined_and_it_is_said():
    found = build_on_meta(resolve_checkpoint("type:qwen3_vl"))
    assert found.config.vision_config.out_hidden_size == found.config.text_config.hidden_size
    assert any("vision_config.out_hidden_size" in note for note in found.assumed)
    blind = build_on_meta(resolve_checkpoint("type:voxtral"))
    assert blind.config.audio_token_id == blind.config.text_config.vocab_size - 1


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
import sys
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

def leaving():
    sys.exit(3)

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
        ("leaving", FailureKind.UNKNOWN_ARCHITECTURE),
    ],
)
def test_a_factory_that_gives_no_module(factories, name, kind):
    assert refusal(f"py:{factories}:{name}").kind is kind


def test_a_module_that_leaves_on_import(tmp_path, monkeypatch):
    (tmp_path / "leaves_on_import.py").write_text("raise SystemExit(3)\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    failed = refusal("py:leaves_on_import:factory")
    assert failed.message.endswith("importing leaves_on_import failed: SystemExit: 3")


@pytest.mark.parametrize("eps", ["1e-6", None])
def test_a_value_that_the_config_class_refuses_is_told_with_the_reason(tmp_path, eps):
    config = json.dumps({**SMALL_LLAMA, "rms_norm_eps": eps})
    (tmp_path / "config.json").write_text(config, encoding="utf-8")
    message = refusal(str(tmp_path)).message
    assert "rms_norm_eps': TypeError: Field 'rms_norm_eps' expected float" in message
    assert "\n" not in message


def test_a_module_that_cannot_be_imported(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert refusal("py:not_there:factory").kind is FailureKind.NOT_FOUND
