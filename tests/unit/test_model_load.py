"""Checkpoint -> module with its weights."""

import json

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from normscope.checkpoint import resolve_checkpoint
from normscope.errors import FailureKind, NormscopeError
from normscope.model import load_model, load_tokenizer


@pytest.fixture
def saved(tmp_path):
    config = transformers.GPT2Config(
        n_embd=16,
        n_layer=2,
        n_head=2,
        vocab_size=40,
        n_positions=16,
        bos_token_id=0,
        eos_token_id=0,
    )
    torch.manual_seed(0)
    transformers.GPT2LMHeadModel(config).save_pretrained(tmp_path)
    return tmp_path


def refusal(path):
    with pytest.raises(NormscopeError) as caught:
        load_model(resolve_checkpoint(str(path)))
    return caught.value


def test_the_weights_are_those_of_the_file(saved):
    loaded = load_model(resolve_checkpoint(str(saved)))
    stored = load_file(saved / "model.safetensors")
    weights = dict(loaded.module.named_parameters())
    assert loaded.class_name == "GPT2LMHeadModel"
    assert torch.equal(
        weights["transformer.h.1.ln_2.weight"], stored["transformer.h.1.ln_2.weight"]
    )
    assert not loaded.module.training


def test_a_tied_head_is_not_missing(saved):
    assert "lm_head.weight" not in load_file(saved / "model.safetensors")
    loaded = load_model(resolve_checkpoint(str(saved)))
    assert loaded.module.lm_head.weight is loaded.module.transformer.wte.weight


def test_another_dtype_can_be_asked_for(saved):
    loaded = load_model(resolve_checkpoint(str(saved)), dtype="bfloat16")
    assert (loaded.dtype, loaded.module.lm_head.weight.dtype) == ("bfloat16", torch.bfloat16)


def test_a_tensor_that_is_missing_is_named(saved):
    stored = load_file(saved / "model.safetensors")
    del stored["transformer.h.0.ln_1.weight"]
    save_file(stored, saved / "model.safetensors", metadata={"format": "pt"})
    error = refusal(saved)
    assert error.kind is FailureKind.CORRUPT
    assert "transformer.h.0.ln_1.weight" in error.message


def test_a_tensor_of_another_shape_is_corrupt(saved):
    stored = load_file(saved / "model.safetensors")
    stored["transformer.ln_f.weight"] = torch.ones(7)
    save_file(stored, saved / "model.safetensors", metadata={"format": "pt"})
    error = refusal(saved)
    assert error.kind is FailureKind.CORRUPT
    assert "transformer.ln_f.weight" in error.message


def test_a_file_that_ends_early_is_corrupt(saved):
    path = saved / "model.safetensors"
    path.write_bytes(path.read_bytes()[:200])
    assert refusal(saved).kind is FailureKind.CORRUPT


def test_pickled_weights_are_refused(saved):
    (saved / "model.safetensors").rename(saved / "pytorch_model.bin")
    assert refusal(saved).kind is FailureKind.UNSAFE_WEIGHTS


def test_without_weights_inspect_is_named(saved):
    (saved / "model.safetensors").unlink()
    error = refusal(saved)
    assert error.kind is FailureKind.NOT_FOUND
    assert "inspect" in error.hint


def test_a_type_has_no_weights():
    error = refusal("type:bert")
    assert error.kind is FailureKind.NOT_FOUND
    assert "no weights" in error.message


def test_nothing_is_printed(saved, capfd):
    load_model(resolve_checkpoint(str(saved)))
    assert capfd.readouterr() == ("", "")


def test_a_checkpoint_without_tokenizer_has_none(saved):
    assert load_tokenizer(resolve_checkpoint(str(saved))) is None
    assert load_tokenizer(resolve_checkpoint("type:bert")) is None


def test_the_demos_have_a_tokenizer():
    tokenizer = load_tokenizer(resolve_checkpoint("demo:pre-norm"))
    assert tokenizer is not None
    ids = tokenizer("a b")["input_ids"]
    assert len(ids) >= 3
    config = json.loads((resolve_checkpoint("demo:pre-norm").directory / "config.json").read_text())
    assert max(ids) < config["vocab_size"]
