"""Checkpoints with damaged weights: one clear line, status 3, and nothing half-written."""

import json
import struct

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
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
}
SINGLE = "model.safetensors"
INDEX = f"{SINGLE}.index.json"


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "checkpoint"
    transformers.LlamaForCausalLM(transformers.LlamaConfig(**SHAPE)).save_pretrained(path)
    return path


def cut(folder):
    path = folder / SINGLE
    path.write_bytes(path.read_bytes()[:-100])


def cut_within_the_header(folder):
    path = folder / SINGLE
    path.write_bytes(path.read_bytes()[:100])


def empty(folder):
    (folder / SINGLE).write_bytes(b"")


def a_folder(folder):
    (folder / SINGLE).unlink()
    (folder / SINGLE).mkdir()


def a_long_header(folder):
    path = folder / SINGLE
    path.write_bytes(struct.pack("<Q", 2**40) + path.read_bytes()[8:])


def moved(change):
    """Return what rewrites where the header says that a tensor lies."""

    def damage(folder):
        path = folder / SINGLE
        content = path.read_bytes()
        (length,) = struct.unpack("<Q", content[:8])
        header = json.loads(content[8 : 8 + length])
        first, second = (name for name in list(header)[:3] if name != "__metadata__")
        change(header[first], header[second])
        text = json.dumps(header).encode()
        path.write_bytes(struct.pack("<Q", len(text)) + text + content[8 + length :])

    return damage


def overlap(first, second):
    first["data_offsets"] = second["data_offsets"]


def out_of_range(first, _):
    start, stop = first["data_offsets"]
    first["data_offsets"] = [start + 2**40, stop + 2**40]


def indexed(weight_map):
    def damage(folder):
        (folder / SINGLE).rename(folder / "1.safetensors")
        (folder / INDEX).write_text(json.dumps({"weight_map": weight_map}))

    return damage


def in_two_shards(folder):
    indexed({"model.norm.weight": "1.safetensors", "x": "2.safetensors"})(folder)
    save_file({"model.norm.weight": torch.ones(16)}, folder / "2.safetensors")


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (cut, "is damaged"),
        (cut_within_the_header, "is damaged"),
        (empty, "is damaged"),
        (a_folder, "is a folder"),
        (a_long_header, "is damaged"),
        (moved(overlap), "is damaged"),
        (moved(out_of_range), "is damaged"),
        (indexed({"a": "2.safetensors"}), "missing: 2.safetensors"),
        (indexed({"a": "../1.safetensors"}), "outside of the folder"),
        (indexed({"a": "1.safetensors"}), "places a in 1.safetensors"),
        (in_two_shards, "holds model.norm.weight, and so does 1.safetensors"),
    ],
)
def test_it_is_refused_in_one_line(folder, tmp_path, damage, words):
    damage(folder)
    out = tmp_path / "out.json"
    result = CliRunner().invoke(
        app, ["inspect", str(folder), "--weights", "norms", "-f", "json", "-o", str(out)]
    )
    assert result.exit_code == 3
    answer = json.loads(out.read_text())
    assert answer["kind"] == "corrupt"
    assert words in answer["message"]
    assert "\n" not in answer["message"]
    assert answer["hint"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkpoint", "out.json"]


def test_others_are_answered_all_the_same(folder):
    cut(folder)
    result = CliRunner().invoke(app, ["inspect", str(folder), "demo:pre-norm", "-f", "jsonl"])
    assert result.exit_code == 3
    failed, found = map(json.loads, result.stdout.splitlines())
    assert (failed["kind"], found["placement"]) == ("corrupt", "pre-norm")


@pytest.mark.parametrize(
    ("value", "problem", "words"),
    [
        (torch.tensor(1.0), "other_shape", "stored with another shape than the model has"),
        (torch.full((16,), float("nan")), None, "NaN or infinite values"),
        (torch.empty(0), "other_shape", "stored with another shape than the model has"),
    ],
    ids=["0-d", "NaN", "empty"],
)
def test_a_gain_that_cannot_be_right_is_told_and_the_rest_is_read(folder, value, problem, words):
    tensors = load_file(folder / SINGLE) | {"model.norm.weight": value}
    save_file(tensors, folder / SINGLE, metadata={"format": "pt"})
    arguments = ["inspect", str(folder), "--weights", "norms"]
    result = CliRunner().invoke(app, [*arguments, "-f", "json"])
    assert result.exit_code == 0
    parameters = {item["name"]: item for item in json.loads(result.stdout)["stored"]["parameters"]}
    assert parameters.pop("model.norm.weight")["problem"] == problem
    assert all(item["values"]["mean"] == 1 for item in parameters.values())
    shown = " ".join(CliRunner().invoke(app, arguments).stdout.split())
    assert f"{words}: model.norm.weight" in shown
