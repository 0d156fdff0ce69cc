"""`normscope inspect --weights` and `--gains` on saved checkpoints."""

import json
import pickle

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from typer.testing import CliRunner

from normscope.cli.app import app

SHAPE = {
    "vocab_size": 40,
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
}


def run(*arguments):
    return CliRunner().invoke(app, ["inspect", *map(str, arguments)])


def document(*arguments):
    return json.loads(run(*arguments, "-f", "json").stdout)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    folder = tmp_path_factory.mktemp("llama")
    torch.manual_seed(0)
    transformers.LlamaForCausalLM(transformers.LlamaConfig(**SHAPE)).save_pretrained(folder)
    return folder


@pytest.fixture
def changed(checkpoint, tmp_path):
    """Return a function that writes the checkpoint anew with other tensors."""

    def write(change):
        tensors = change(load_file(checkpoint / "model.safetensors"))
        save_file(tensors, tmp_path / "model.safetensors", metadata={"format": "pt"})
        (tmp_path / "config.json").write_bytes((checkpoint / "config.json").read_bytes())
        return tmp_path

    return write


def test_headers_are_read_where_the_weights_lie_here(checkpoint):
    found = document(checkpoint)
    assert found["weights"] == "headers"
    stored = found["stored"]
    assert (stored["container"], stored["files"]) == ("safetensors", 1)
    assert stored["bytes_read"] < stored["file_bytes"]
    assert len(stored["parameters"]) == 7
    assert {item["values"] for item in stored["parameters"]} == {None}


def test_a_config_alone_has_no_weights(checkpoint):
    found = document(checkpoint / "config.json")
    assert (found["weights"], "stored" in found) == ("none", False)


def test_a_folder_and_its_config_share_no_answer(checkpoint):
    assert document(checkpoint)["weights"] == "headers"
    assert document(checkpoint / "config.json")["weights"] == "none"
    assert document(checkpoint)["weights"] == "headers"


def test_none_reads_nothing_even_of_a_damaged_file(changed):
    folder = changed(lambda tensors: tensors)
    (folder / "model.safetensors").write_bytes(b"short")
    assert document(folder, "--weights", "none")["weights"] == "none"
    result = run(folder, "-f", "json")
    assert result.exit_code == 3
    assert json.loads(result.stdout)["kind"] == "corrupt"


def test_changed_weights_are_read_anew_in_spite_of_the_cache(changed):
    def without_final(tensors):
        del tensors["model.norm.weight"]
        return tensors

    folder = changed(lambda tensors: tensors)
    assert not [p for p in document(folder)["stored"]["parameters"] if p["problem"]]
    changed(without_final)
    problems = [p for p in document(folder)["stored"]["parameters"] if p["problem"]]
    assert [(p["name"], p["problem"]) for p in problems] == [("model.norm.weight", "missing")]


def test_what_is_wrong_is_said_in_words(changed):
    def broken(tensors):
        del tensors["model.norm.weight"]
        tensors["model.layers.0.input_layernorm.weight"] = torch.ones(4)
        tensors["model.layers.1.input_layernorm.weight"] = torch.zeros(16)
        tensors["model.layers.2.input_layernorm.weight"] = torch.full((16,), float("nan"))
        tensors["model.extra_norm.weight"] = torch.ones(16)
        return tensors

    shown = " ".join(run(changed(broken), "--weights", "norms").stdout.split())
    assert "missing from the weights, and filled with fresh values on loading: model.norm" in shown
    assert "another shape than the model has: model.layers.0.input_layernorm.weight" in shown
    assert "a gain of zero in every channel: model.layers.1.input_layernorm.weight" in shown
    assert "NaN or infinite values: model.layers.2.input_layernorm.weight" in shown
    constant = "a gain of 1 in every channel, as before training"
    assert f"{constant}: model.layers.0-2.post_attention_layernorm.weight" in shown
    assert "1 stored tensor that the model does not read: model.extra_norm.weight" in shown


def test_a_clean_checkpoint_has_none_of_these_remarks(checkpoint):
    shown = " ".join(run(checkpoint, "--weights", "norms").stdout.split())
    for words in ("missing", "another shape", "zero", "NaN", "does not read", "renamed", "centred"):
        assert words not in shown


def test_norms_of_another_type_are_told(changed):
    def wide(tensors):
        return {
            name: value if value.dim() == 1 else value.bfloat16() for name, value in tensors.items()
        }

    folder = changed(wide)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "dtype": "bfloat16"}))
    shown = " ".join(run(folder).stdout.split())
    assert "stored in float32, and the model is built in bfloat16" in shown


def test_gains_over_depth(changed):
    def growing(tensors):
        for number in range(3):
            tensors[f"model.layers.{number}.input_layernorm.weight"] = torch.full(
                (16,), 1.0 + number
            )
        return tensors

    lines = run(changed(growing), "--gains").stdout.splitlines()
    (row,) = [line.split() for line in lines if line.startswith("model.layers.*.input_layernorm")]
    assert row[1:] == ["0-2", "1", "▁▅█", "3", "1", "3"]


def test_gains_of_a_target_without_weights():
    assert "no weights that can be read" in run("type:bert", "--gains").stdout


@pytest.fixture
def pickled(checkpoint, tmp_path):
    torch.save(load_file(checkpoint / "model.safetensors"), tmp_path / "pytorch_model.bin")
    (tmp_path / "config.json").write_bytes((checkpoint / "config.json").read_bytes())
    return tmp_path


def test_pickled_weights_stay_closed_unless_asked_for(pickled):
    (pickled / "pytorch_model.bin").write_bytes(pickle.dumps(print))
    found = document(pickled)
    assert found["weights"] == "none"
    assert any("were not opened" in warning for warning in found["warnings"])


def test_pickled_weights_are_read_where_asked_for(pickled, checkpoint):
    found = document(pickled, "--weights", "norms")["stored"]
    usual = document(checkpoint, "--weights", "norms")["stored"]
    assert found["container"] == "pickled"
    assert [item["values"] for item in found["parameters"]] == [
        item["values"] for item in usual["parameters"]
    ]


class Payload:
    """Would write a file if it were unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (str(self.path), "w"))


def test_a_pickled_program_is_refused_and_not_run(pickled, tmp_path):
    torch.save({"x": Payload(tmp_path / "ran")}, pickled / "pytorch_model.bin")
    result = run(pickled, "--weights", "headers", "-f", "json")
    assert result.exit_code == 3
    assert json.loads(result.stdout)["kind"] == "unsafe_weights"
    assert not (tmp_path / "ran").exists()


def test_a_pickled_file_that_is_none(pickled):
    (pickled / "pytorch_model.bin").write_bytes(b"no pickle at all")
    result = run(pickled, "--weights", "headers", "-f", "json")
    assert json.loads(result.stdout)["kind"] in {"corrupt", "unsafe_weights"}


def test_an_audit_says_that_the_weights_are_pickled_and_what_reads_them(pickled):
    found = CliRunner().invoke(app, ["audit", str(pickled), "--select", "NS3", "-f", "json"])
    unchecked = json.loads(found.stdout)["targets"][0]["unchecked"]
    assert {each["code"] for each in unchecked} >= {"NS301", "NS303"}
    assert {each["reason"] for each in unchecked} == {
        "the weights are pickled and were not opened: `--weights norms` reads them"
    }
    asked = ["audit", str(pickled), "--select", "NS3", "--weights", "norms", "-f", "json"]
    found = CliRunner().invoke(app, asked)
    assert json.loads(found.stdout)["targets"][0]["unchecked"] == []


@pytest.fixture
def shards(checkpoint, tmp_path):
    for number in (1, 2):
        name = f"model-0000{number}-of-00008.safetensors"
        (tmp_path / name).write_bytes((checkpoint / "model.safetensors").read_bytes())
    (tmp_path / "config.json").write_bytes((checkpoint / "config.json").read_bytes())
    return tmp_path


def test_shards_without_an_index_are_no_folder_without_weights(shards):
    with pytest.raises(OSError, match=r"no file named model\.safetensors"):
        transformers.AutoModel.from_pretrained(shards)
    told = "2 shards of safetensors and no model.safetensors.index.json"
    result = run(shards, "-f", "json")
    assert result.exit_code == 3
    assert json.loads(result.stdout)["kind"] == "corrupt"
    assert told in json.loads(result.stdout)["message"]
    audited = CliRunner().invoke(app, ["audit", str(shards), "-f", "json"])
    assert audited.exit_code == 3
    assert told in audited.stdout
    assert run(shards, "--weights", "none").exit_code == 0


def test_shards_beside_weights_that_transformers_loads_are_left_alone(shards, checkpoint):
    torch.save(load_file(checkpoint / "model.safetensors"), shards / "pytorch_model.bin")
    assert any("are pickled" in warning for warning in document(shards)["warnings"])


def test_an_audit_says_that_no_stored_shape_fits(checkpoint, tmp_path):
    config = json.loads((checkpoint / "config.json").read_text())
    wider = {**config, "hidden_size": 2 * config["hidden_size"]}
    (tmp_path / "config.json").write_text(json.dumps(wider))
    (tmp_path / "model.safetensors").write_bytes((checkpoint / "model.safetensors").read_bytes())
    result = CliRunner().invoke(app, ["audit", str(tmp_path), "--select", "NS3", "-f", "json"])
    (target,) = json.loads(result.stdout)["targets"]
    assert {each["reason"] for each in target["unchecked"]} == {
        "the norms' parameters are stored with other shapes than the model has"
    }
    assert {finding["code"] for finding in target["findings"]} == {"NS302"}
