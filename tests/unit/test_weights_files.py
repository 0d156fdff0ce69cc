"""Directory -> weight files -> headers: what is refused, and with which words."""

import json
import os
import struct
from dataclasses import replace

import pytest
import torch
from safetensors.torch import save_file

from normscope.checkpoint import Checkpoint, CheckpointKind
from normscope.errors import FailureKind, NormscopeError
from normscope.weights.files import SINGLE, find_pickled_files, find_weight_files
from normscope.weights.safetensors_folder import SafetensorsFolder
from normscope.weights.source import open_source

INDEX = f"{SINGLE}.index.json"

ONE = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}


def written(path, header, data=b"\0" * 8, length=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text) if length is None else length) + text + data)


def headers_of(folder):
    return source_of(folder).describe()


def source_of(folder):
    return SafetensorsFolder("here", find_weight_files("here", folder))


def refusal(folder):
    with pytest.raises(NormscopeError) as caught:
        headers_of(folder)
    assert caught.value.kind is FailureKind.CORRUPT
    assert caught.value.message.startswith("here: ")
    return caught.value.message


def sharded(folder, weight_map):
    (folder / INDEX).write_text(json.dumps({"weight_map": weight_map}))


def test_names_types_and_shapes_come_from_the_header(tmp_path):
    tensors = {"a.weight": torch.ones(3, 2, dtype=torch.bfloat16), "b": torch.tensor(1.0)}
    save_file(tensors, tmp_path / SINGLE)
    found = headers_of(tmp_path)
    assert {name: (t.dtype, t.shape) for name, t in found.items()} == {
        "a.weight": ("bfloat16", (3, 2)),
        "b": ("float32", ()),
    }


def test_only_the_header_is_counted_as_read(tmp_path):
    save_file({"a": torch.ones(100_000)}, tmp_path / SINGLE)
    length = int.from_bytes((tmp_path / SINGLE).read_bytes()[:8], "little")
    source = source_of(tmp_path)
    source.describe()
    assert source.bytes_read == 8 + length < 200
    assert torch.equal(dict(source.read(["a"]))["a"], torch.ones(100_000))
    assert source.bytes_read == 8 + length + 400_000


def test_a_folder_without_weights_has_no_tensors(tmp_path):
    assert headers_of(tmp_path) == {}


def test_pickled_weights_are_told_and_never_opened(tmp_path):
    (tmp_path / "pytorch_model.bin").write_bytes(b"not a pickle")
    assert find_weight_files("here", tmp_path).paths == ()
    assert [path.name for path in find_pickled_files("here", tmp_path).paths] == [
        "pytorch_model.bin"
    ]


def test_the_single_file_wins_over_an_index_as_in_transformers(tmp_path):
    save_file({"a": torch.ones(2)}, tmp_path / SINGLE)
    sharded(tmp_path, {"a": "missing.safetensors"})
    assert set(headers_of(tmp_path)) == {"a"}


def test_shards_are_read_together(tmp_path):
    save_file({"a": torch.ones(2)}, tmp_path / "1.safetensors")
    save_file({"b": torch.ones(3)}, tmp_path / "2.safetensors")
    sharded(tmp_path, {"a": "1.safetensors", "b": "2.safetensors"})
    found = headers_of(tmp_path)
    assert {name: tensor.file for name, tensor in found.items()} == {
        "a": "1.safetensors",
        "b": "2.safetensors",
    }


@pytest.mark.parametrize(
    ("data", "header", "words"),
    [
        (b"\0" * 4, {"a": ONE}, "damaged"),
        (b"\0" * 16, {"a": ONE}, "damaged"),
        (b"\0" * 8, {"a": {**ONE, "shape": [3]}}, "damaged"),
        (b"\0" * 8, {"a": {**ONE, "data_offsets": [0, 80], "shape": [20]}}, "damaged"),
        (b"\0" * 12, {"a": ONE, "b": {**ONE, "data_offsets": [4, 12]}}, "damaged"),
        (b"", b"hello{", "damaged"),
        (
            b"\0" * 8,
            b'{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},'
            b'"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}',
            "lists a twice",
        ),
    ],
    ids=["truncated", "trailing", "shape", "range", "overlap", "no json", "twice"],
)
def test_a_damaged_file_is_refused(tmp_path, data, header, words):
    written(tmp_path / SINGLE, header, data)
    assert f"{SINGLE} " in refusal(tmp_path)
    assert words in refusal(tmp_path)


@pytest.mark.parametrize("length", [10**6, 2**62])
def test_a_header_longer_than_the_file_is_refused(tmp_path, length):
    written(tmp_path / SINGLE, {"a": ONE}, length=length)
    assert "damaged" in refusal(tmp_path)


def test_an_empty_file_is_refused(tmp_path):
    (tmp_path / SINGLE).touch()
    assert "damaged" in refusal(tmp_path)


def test_a_folder_in_place_of_a_file_is_refused(tmp_path):
    (tmp_path / SINGLE).mkdir()
    assert f"{SINGLE} is a folder" in refusal(tmp_path)


def test_a_pipe_in_place_of_a_file_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / SINGLE)
    assert "no regular file" in refusal(tmp_path)


def test_a_link_to_nothing_is_missing_not_absent(tmp_path):
    (tmp_path / SINGLE).symlink_to(tmp_path / "gone")
    assert f"{SINGLE} is missing" in refusal(tmp_path)


@pytest.mark.parametrize(
    "name", ["../else.safetensors", "/etc/hosts", "sub/x.safetensors", "..", "a\\b", "a\0b"]
)
def test_an_index_never_leads_outside_of_the_folder(tmp_path, name):
    (tmp_path.parent / "else.safetensors").touch()
    sharded(tmp_path, {"a": name})
    assert "outside of the folder" in refusal(tmp_path)


def test_an_index_that_names_a_missing_shard(tmp_path):
    sharded(tmp_path, {"a": "1.safetensors"})
    assert "missing: 1.safetensors" in refusal(tmp_path)


def test_an_index_that_lies_of_a_tensor(tmp_path):
    save_file({"a": torch.ones(2)}, tmp_path / "1.safetensors")
    sharded(tmp_path, {"a": "1.safetensors", "b": "1.safetensors"})
    assert "places b in 1.safetensors" in refusal(tmp_path)


def test_a_tensor_in_two_shards(tmp_path):
    for name in ("1.safetensors", "2.safetensors"):
        save_file({"a": torch.ones(2)}, tmp_path / name)
    sharded(tmp_path, {"a": "1.safetensors", "b": "2.safetensors"})
    assert "holds a, and so does 1.safetensors" in refusal(tmp_path)


@pytest.mark.parametrize("content", ["[1]", "{", '{"weight_map": 3}', '{"weight_map": {"a": 1}}'])
def test_an_index_that_is_none(tmp_path, content):
    (tmp_path / INDEX).write_text(content)
    assert INDEX in refusal(tmp_path)


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (("model-00001-of-00008.safetensors",), "here: a shard of safetensors and no "),
        (("model-1-of-2.safetensors", "model-2-of-2.safetensors"), "here: 2 shards of "),
    ],
)
def test_shards_without_an_index_are_refused(tmp_path, names, told):
    for name in names:
        (tmp_path / name).write_bytes(b"")
    checkpoint = Checkpoint(target="here", kind=CheckpointKind.DIRECTORY, directory=tmp_path)
    with pytest.raises(NormscopeError) as caught:
        open_source(checkpoint)
    assert caught.value.kind is FailureKind.CORRUPT
    assert caught.value.message.startswith(told)
    named = replace(checkpoint, config={"transformers_weights": names[0]})
    assert open_source(named) is None
    (tmp_path / "pytorch_model.bin").write_bytes(b"")
    assert open_source(checkpoint) is None


def test_other_files_of_tensors_are_no_shards(tmp_path):
    (tmp_path / "adapter_model.safetensors").write_bytes(b"")
    (tmp_path / "consolidated-00001-of-00002.safetensors").write_bytes(b"")
    checkpoint = Checkpoint(target="here", kind=CheckpointKind.DIRECTORY, directory=tmp_path)
    assert open_source(checkpoint) is None
