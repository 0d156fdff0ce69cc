"""GGUF files: which tensor is which norm's, what the file holds of it, and what is refused."""

import json
import os
import struct
from pathlib import Path

import gguf
import numpy as np
import pytest
import torch
import transformers
from typer.testing import CliRunner

from normscope.cli.app import app
from normscope.errors import FailureKind, NormscopeError
from normscope.inspection import Inspection, Uninspectable
from normscope.pipeline import InspectOptions, compare_checkpoints, inspect_checkpoint
from normscope.render.remarks import remarks_on
from normscope.weights import gguf_file
from normscope.weights.gguf_file import GgufFile
from normscope.weights.gguf_names import gguf_renaming
from normscope.weights.judgements import StoredProblemKind, stored_problems
from normscope.weights.report import WeightsLevel
from normscope.weights.stored import StoredTensor
from specimens.gguf_files import WIDTH, write_gpt2_like, write_llama_like
from specimens.gguf_ports import small_gemma, small_llama, write_gguf


def inspected(path: Path, level: WeightsLevel | None = WeightsLevel.NORMS) -> Inspection:
    answer = inspect_checkpoint(str(path), InspectOptions(weights=level))
    assert isinstance(answer, Inspection), answer
    return answer


def values_of(path: Path, name: str) -> torch.Tensor:
    source = GgufFile("here", path)
    source.describe()
    return dict(source.read([name]))[name]


class TestWhatIsRead:
    def test_every_norm_has_its_tensor_and_its_values(self, tmp_path):
        path = tmp_path / "tiny.gguf"
        tensors = write_gpt2_like(path)
        stored = inspected(path).stored
        assert (stored.container, stored.files) == ("gguf", 1)
        assert [item.problem for item in stored.parameters] == [None] * 10
        by_name = {item.stored_name: item for item in stored.parameters}
        for name in ("blk.1.ffn_norm.weight", "output_norm.bias"):
            assert by_name[name].values.mean == pytest.approx(float(tensors[name].mean()), rel=1e-5)
        assert stored.unexpected == ()

    def test_headers_are_read_unasked_and_no_value_is(self, tmp_path):
        path = tmp_path / "tiny.gguf"
        write_llama_like(path)
        found = inspected(path, None)
        assert found.weights == "headers"
        assert {item.values for item in found.stored.parameters} == {None}
        with_values = inspected(path).stored
        assert with_values.bytes_read - found.stored.bytes_read == 5 * WIDTH * 4
        assert found.stored.bytes_read == gguf.GGUFReader(path).data_offset
        assert inspected(path, WeightsLevel.NONE).stored is None

    def test_no_other_byte_is_asked_for(self, tmp_path, monkeypatch):
        path = tmp_path / "tiny.gguf"
        write_llama_like(path)
        sizes = []
        unpacked = gguf_file._unpacked
        monkeypatch.setattr(
            gguf_file,
            "_unpacked",
            lambda tensor, content: sizes.append(len(content)) or unpacked(tensor, content),
        )
        inspected(path)
        assert sizes == [WIDTH * 4] * 5

    @pytest.mark.parametrize("dtype", ["F16", "BF16", "F64", "Q8_0"])
    def test_norms_of_other_types(self, tmp_path, dtype):
        path = tmp_path / "one.gguf"
        values = np.linspace(0.5, 1.5, 64, dtype=np.float32)
        kind = gguf.GGMLQuantizationType[dtype]
        writer = gguf.GGUFWriter(path, "llama")
        if dtype == "F64":
            writer.add_tensor("x", values.astype(np.float64))
        else:
            writer.add_tensor("x", gguf.quantize(values, kind), raw_dtype=kind)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        found = GgufFile("here", path).describe()["x"]
        words = {"F16": "float16", "BF16": "bfloat16", "F64": "float64", "Q8_0": "q8_0"}
        assert (found.dtype, found.shape) == (words[dtype], (64,))
        assert torch.allclose(values_of(path, "x").float(), torch.tensor(values), atol=1e-2)


class TestOffsets:
    def test_a_file_that_holds_the_sum_is_told_and_not_counted_twice(self, tmp_path):
        path = tmp_path / "gemma.gguf"
        model = small_gemma()
        write_gguf(path, model)
        found = inspected(path)
        gains = found.stored.parameters
        assert {item.added for item in gains} == {1.0}
        final = next(item for item in gains if item.stored_name == "output_norm.weight")
        effective = model.state_dict()["model.norm.weight"].double() + 1
        assert final.values.effective_mean == pytest.approx(float(effective.mean()), rel=1e-6)
        assert final.values.mean == final.values.effective_mean
        (said,) = [remark for remark in remarks_on(found) if "1 + w" in remark]
        assert said.startswith("the file holds 1 + w where the model's norms take w (13 gains)")

    def test_a_plain_gain_is_held_as_it_is(self, tmp_path):
        path = tmp_path / "llama.gguf"
        write_gguf(path, small_llama())
        found = inspected(path)
        assert {item.added for item in found.stored.parameters} == {0.0}
        assert not [remark for remark in remarks_on(found) if "1 + w" in remark]

    @pytest.mark.parametrize(("extra", "words"), [(1.0, "added twice"), (-1.0, "is missing")])
    def test_one_added_twice_or_never(self, tmp_path, extra, words):
        model = small_gemma()
        with torch.no_grad():
            for value in model.parameters():
                if value.dim() == 1:
                    value += extra
        write_gguf(tmp_path / "bad.gguf", model)
        stored = inspected(tmp_path / "bad.gguf").stored
        (problem,) = [p for p in stored_problems(stored) if p.kind is StoredProblemKind.OFFSET]
        assert words in problem.message

    def test_conversions_of_the_newer_loader(self):
        config = transformers.Qwen3_5TextConfig(
            vocab_size=10,
            hidden_size=16,
            intermediate_size=32,
            num_hidden_layers=4,
            num_attention_heads=2,
            num_key_value_heads=1,
            head_dim=8,
            linear_num_key_heads=1,
            linear_num_value_heads=2,
            linear_key_head_dim=8,
            linear_value_head_dim=8,
        )
        with torch.device("meta"):
            module = transformers.Qwen3_5ForCausalLM(config)
        renaming = gguf_renaming("here", "qwen35", module)
        expected = module.state_dict()
        added = {}
        for name in ("output_norm", "blk.3.attn_norm", "blk.3.attn_q_norm", "blk.0.ssm_norm"):
            stored = f"{name}.weight"
            target = renaming.parameter(stored)
            assert target in expected
            shape = tuple(expected[target].shape)
            tensor = StoredTensor(name=stored, dtype="float32", shape=shape, file="x")
            added[name] = renaming.added(tensor)
        assert added == {
            "output_norm": 1.0,
            "blk.3.attn_norm": 1.0,
            "blk.3.attn_q_norm": 1.0,
            "blk.0.ssm_norm": 0.0,
        }
        decay = StoredTensor(name="blk.0.ssm_a", dtype="float32", shape=(2,), file="x")
        assert renaming.added(decay) is None

    def test_the_map_of_names_is_made_once(self, monkeypatch):
        made = []
        usual = gguf.get_tensor_name_map
        monkeypatch.setattr(
            gguf, "get_tensor_name_map", lambda *facts: made.append(facts) or usual(*facts)
        )
        counting = gguf.get_tensor_name_map
        renaming = gguf_renaming("here", "llama", small_llama())
        assert renaming.parameter("output_norm.weight") == "model.norm.weight"
        assert len(made) == 1
        assert gguf.get_tensor_name_map is counting

    def test_an_architecture_whose_names_are_not_known(self, tmp_path):
        module = small_llama()
        module.config.model_type = "unheard-of"
        with pytest.raises(NormscopeError, match="which tensor of this other file") as caught:
            gguf_renaming("here", "other", module)
        assert caught.value.kind is FailureKind.UNKNOWN_ARCHITECTURE


class TestPorts:
    @pytest.mark.parametrize("make", [small_llama, small_gemma])
    @pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
    def test_a_checkpoint_and_its_gguf_have_equal_values(self, tmp_path, make, dtype):
        model = make().to(dtype)
        model.save_pretrained(tmp_path / "hf")
        write_gguf(tmp_path / "port.gguf", model)
        options = InspectOptions(dtype="float32")
        found = compare_checkpoints(
            str(tmp_path / "hf"), str(tmp_path / "port.gguf"), options, tolerance=0.0
        )
        assert len(found.values) in {5, 13}
        assert found.differences == ()
        assert found.unequal_values == ()
        assert found.equal

    def test_a_port_that_lost_its_offset_differs(self, tmp_path):
        model = small_gemma()
        model.save_pretrained(tmp_path / "hf")
        with torch.no_grad():
            model.model.norm.weight -= 1
        write_gguf(tmp_path / "port.gguf", model)
        found = compare_checkpoints(str(tmp_path / "hf"), str(tmp_path / "port.gguf"))
        (value,) = found.unequal_values
        assert value.largest == pytest.approx(1.0, rel=1e-5)


class TestEps:
    def test_an_eps_that_no_norm_runs_with_is_told(self, tmp_path, monkeypatch):
        path = tmp_path / "tiny.gguf"
        write_gguf(path, small_llama(), eps=3e-4)
        found = inspected(path)
        assert found.stored.stated_eps == (3e-4,)
        assert not [remark for remark in remarks_on(found) if "eps" in remark]
        monkeypatch.setattr(GgufFile, "stated_eps", (1e-5,), raising=False)
        monkeypatch.setattr(gguf_file, "_eps", lambda *_: (1e-5,))
        (said,) = [remark for remark in remarks_on(inspected(path)) if "eps" in remark]
        assert said == "the file names the eps 1e-05, and no norm runs with it: 0.0003"


def header(tensors, *, count=None, entries=None, magic=b"GGUF", version=3, data=b""):
    """Write a GGUF file by hand; a tensor is (name, shape in ggml's order, type, offset)."""
    keys = [text("general.architecture") + struct.pack("<I", 8) + text("llama")]
    listed = [
        text(name)
        + struct.pack("<I", len(shape))
        + struct.pack(f"<{len(shape)}Q", *shape)
        + struct.pack("<IQ", kind, offset)
        for name, shape, kind, offset in tensors
    ]
    content = magic + struct.pack(
        "<IQQ",
        version,
        len(listed) if count is None else count,
        len(keys) if entries is None else entries,
    )
    content += b"".join(keys) + b"".join(listed)
    return content + b"\0" * (-len(content) % 32) + data


def text(value):
    return struct.pack("<Q", len(value)) + value.encode()


ONE = ("a", (8,), 0, 0)
DATA = b"\0" * 32


class TestDamage:
    @pytest.mark.parametrize(
        ("content", "words"),
        [
            (b"", "it is empty"),
            (b"GG", "ends within its header"),
            (header([ONE], magic=b"GGML", data=DATA), "does not begin with the letters GGUF"),
            (header([ONE], version=1, data=DATA), "version 1"),
            (header([ONE], data=DATA)[:60], "ends within its header"),
            (header([ONE], data=DATA[:-1]), "ends before the values of a do"),
            (header([ONE], count=2**60, data=DATA), f"too short for the {2**60} tensors"),
            (header([ONE], count=3, data=DATA), "damaged"),
            (header([ONE], entries=2**62, data=DATA), f"{2**62} entries of metadata"),
            (header([("a", (2**62,), 0, 0)], data=DATA), "ends before the values of a do"),
            (header([("a", (8,), 0, 2**63)], data=DATA), "ends before the values of a do"),
            (header([("a", (1,) * 9, 0, 0)], data=DATA), "a has 9 dimensions"),
            (header([("a", (8,), 99, 0)], data=DATA), "a is of a type (99)"),
            (header([("a", (7,), 8, 0)], data=DATA), "blocks that its shape does not fill"),
            (header([ONE, ONE], data=DATA), "lists a twice"),
            (header([ONE, ("b", (8,), 0, 16)], data=DATA * 2), "a and b overlap"),
        ],
    )
    def test_each_has_its_words(self, tmp_path, content, words):
        path = tmp_path / "bad.gguf"
        path.write_bytes(content)
        with pytest.raises(NormscopeError) as caught:
            GgufFile("here", path).describe()
        assert caught.value.kind is FailureKind.CORRUPT
        assert caught.value.message.startswith("here: bad.gguf is damaged: ")
        assert words in caught.value.message

    def test_a_whole_one_written_by_hand(self, tmp_path):
        path = tmp_path / "good.gguf"
        path.write_bytes(header([ONE, ("b", (), 0, 32)], data=DATA + b"\0\0\x80\x3f"))
        found = GgufFile("here", path).describe()
        assert {name: tensor.shape for name, tensor in found.items()} == {"a": (8,), "b": ()}
        assert values_of(path, "b").item() == 1.0

    @pytest.mark.parametrize("cut", [3, 20, 200, 20_000])
    def test_a_cut_file_has_status_3_and_one_whole_answer(self, tmp_path, cut):
        path = tmp_path / "cut.gguf"
        write_llama_like(path)
        path.write_bytes(path.read_bytes()[:cut])
        out = tmp_path / "out.json"
        result = CliRunner().invoke(app, ["inspect", str(path), "-f", "json", "-o", str(out)])
        assert result.exit_code == 3
        answer = json.loads(out.read_text())
        assert answer["kind"] == "corrupt"
        assert "\n" not in answer["message"]
        assert sorted(file.name for file in tmp_path.iterdir()) == ["cut.gguf", "out.json"]

    @pytest.mark.parametrize(
        ("content", "words"),
        [
            (b"", "it is empty"),
            (b"PK\x03\x04 and more", "it does not start with the GGUF magic bytes"),
            (header([ONE], count=2**60, data=DATA), "announces more than it holds"),
            (header([ONE], entries=2**60, data=DATA), "announces more than it holds"),
            (header([ONE], data=DATA)[:60], "announces more than it holds"),
            (header([ONE], version=1, data=DATA), "it is GGUF v1"),
        ],
    )
    def test_a_target_that_is_none_says_why(self, tmp_path, content, words):
        path = tmp_path / "bad.gguf"
        path.write_bytes(content)
        answer = inspect_checkpoint(str(path))
        assert isinstance(answer, Uninspectable)
        assert answer.kind is FailureKind.CORRUPT
        assert words in answer.message
        assert answer.message.count(str(path)) == 1

    def test_a_pipe_of_that_name_is_not_waited_for(self, tmp_path):
        os.mkfifo(tmp_path / "pipe.gguf")
        answer = inspect_checkpoint(str(tmp_path / "pipe.gguf"))
        assert isinstance(answer, Uninspectable)
        assert answer.message.endswith("it is no regular file")

    def test_a_folder_of_that_name(self, tmp_path):
        (tmp_path / "x.gguf").mkdir()
        answer = inspect_checkpoint(str(tmp_path / "x.gguf"))
        assert isinstance(answer, Uninspectable)
        assert answer.kind is FailureKind.NO_CONFIG


class TestWithoutThePackage:
    @pytest.fixture
    def alone(self, tmp_path, monkeypatch):
        write_llama_like(tmp_path / "tiny.gguf")

        def none(target):
            raise NormscopeError(FailureKind.MISSING_DEPENDENCY, f"{target}: needs gguf", "pip")

        monkeypatch.setattr(gguf_file, "_need_gguf", none)
        return tmp_path / "tiny.gguf"

    def test_weights_that_were_asked_for_are_missed(self, alone):
        answer = inspect_checkpoint(str(alone), InspectOptions(weights=WeightsLevel.HEADERS))
        assert isinstance(answer, Uninspectable)
        assert answer.kind is FailureKind.MISSING_DEPENDENCY

    def test_else_the_structure_is_told_and_why_no_more(self, alone):
        found = inspected(alone, None)
        assert (found.weights, found.placement) == ("none", "pre-norm")
        assert found.warnings == (f"the weights were not read: {alone}: needs gguf",)

    def test_the_extra_is_named(self, monkeypatch):
        monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
        with pytest.raises(NormscopeError) as caught:
            gguf_file._need_gguf("here")
        assert caught.value.hint == "pip install 'normscope[gguf]'"
