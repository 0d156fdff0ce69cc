"""GGUF targets: the structure from the metadata, the numbers from the file's own weights."""

from pathlib import Path

import gguf
import numpy as np
import pytest
import torch

from normscope.activations.checkpoint import MeasureOptions, measure_checkpoint
from normscope.checkpoint import CheckpointKind, resolve_checkpoint
from normscope.errors import FailureKind, NormscopeError, UsageError
from normscope.inspection import Inspection, Uninspectable
from normscope.model import Offload, load_model, load_tokenizer, packages
from normscope.model.gguf import memory_note, read_gguf_config
from normscope.model.gguf_reader import short_reader
from normscope.pipeline import InspectOptions, inspect_checkpoint
from specimens.gguf_files import TOKENS, write_gpt2_like, write_llama_like


@pytest.fixture
def llama(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.gguf"
    write_llama_like(path)
    return path


def test_a_gguf_file_is_a_target_and_knows_no_config(llama: Path) -> None:
    checkpoint = resolve_checkpoint(str(llama))
    assert checkpoint.kind is CheckpointKind.GGUF
    assert checkpoint.weights_file == llama
    assert checkpoint.config is None


def inspected(path: Path) -> Inspection:
    answer = inspect_checkpoint(str(path), InspectOptions(cache=True))
    assert isinstance(answer, Inspection), answer
    return answer


def test_the_structure_comes_from_the_metadata(llama: Path, tmp_path: Path) -> None:
    found = inspected(llama)
    assert (found.model.class_name, found.model.model_type) == ("LlamaForCausalLM", "llama")
    assert found.placement == "pre-norm"
    assert [norm.eps for norm in found.norms] == [1e-5] * 5
    write_gpt2_like(tmp_path / "gpt2.gguf")
    found = inspected(tmp_path / "gpt2.gguf")
    assert {norm.kind for norm in found.norms} == {"LayerNorm"}
    assert len(found.norms) == 5
    write_llama_like(tmp_path / "gemma.gguf", "gemma3")
    found = inspected(tmp_path / "gemma.gguf")
    assert found.placement == "sandwich-norm"
    assert {norm.gain for norm in found.norms} == {"1+w"}


def test_a_file_that_changes_is_read_again(llama: Path) -> None:
    assert inspected(llama).placement == "pre-norm"
    write_llama_like(llama, "gemma3")
    assert inspected(llama).placement == "sandwich-norm"


def test_the_weights_are_those_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "tiny.gguf"
    tensors = write_llama_like(path)
    said: list[str] = []
    loaded = load_model(resolve_checkpoint(str(path)), tell=said.append)
    weights = dict(loaded.module.named_parameters())
    gain = torch.tensor(tensors["blk.1.ffn_norm.weight"])
    assert torch.equal(weights["model.layers.1.post_attention_layernorm.weight"], gain)
    assert loaded.dtype == "float32"
    values = sum(tensor.size for tensor in tensors.values())
    (note,) = said
    assert note.endswith(f"unpacked to float32, which takes {values * 4 / 1000:.1f} kB of memory")


def test_gains_that_are_stored_with_one_added_are_read_back(tmp_path: Path) -> None:
    tensors = write_llama_like(tmp_path / "gemma.gguf", "gemma3")
    loaded = load_model(resolve_checkpoint(str(tmp_path / "gemma.gguf")))
    weights = dict(loaded.module.named_parameters())
    stored = torch.tensor(tensors["output_norm.weight"])
    assert torch.allclose(weights["model.norm.weight"] + 1, stored, rtol=1e-6)


@pytest.mark.parametrize("write", [write_llama_like, write_gpt2_like])
def test_norms_are_measured(write: object, tmp_path: Path) -> None:
    path = tmp_path / "tiny.gguf"
    tensors = write(path)  # type: ignore[operator]
    ids = [4, 5, 6]
    statistics = measure_checkpoint(str(path), MeasureOptions(input_ids=[ids]))
    assert [norm.problem for norm in statistics.norms] == [None] * 5
    embedded = torch.tensor(tensors["token_embd.weight"])[ids].double()
    if "position_embd.weight" in tensors:
        embedded += torch.tensor(tensors["position_embd.weight"])[:3].double()
    expected = embedded.var(-1, correction=0).tolist()
    assert statistics.norms[0].before.variance == pytest.approx(expected, rel=1e-5)


def test_the_tokenizer_is_in_the_file(llama: Path) -> None:
    tokenizer = load_tokenizer(resolve_checkpoint(str(llama)))
    assert tokenizer is not None
    assert set(TOKENS) <= set(tokenizer.get_vocab())
    statistics = measure_checkpoint(str(llama), MeasureOptions(texts=["a"]))
    assert statistics.tokens[0].id == TOKENS.index("<s>")


def refusal(path: Path) -> Uninspectable:
    answer = inspect_checkpoint(str(path))
    assert isinstance(answer, Uninspectable)
    return answer


def test_an_architecture_that_transformers_cannot_read_is_named(tmp_path: Path) -> None:
    write_llama_like(tmp_path / "new.gguf", "rwkv7")
    answer = refusal(tmp_path / "new.gguf")
    assert answer.kind is FailureKind.UNKNOWN_ARCHITECTURE
    assert "'rwkv7'; it reads bloom" in answer.message
    assert "general" not in answer.message


def test_what_is_no_gguf_file_is_corrupt(tmp_path: Path) -> None:
    path = tmp_path / "other.gguf"
    path.write_bytes(b"PK\x03\x04 and more")
    assert refusal(path).kind is FailureKind.CORRUPT
    path.write_bytes(b"GGUF")
    assert refusal(path).kind is FailureKind.CORRUPT


def test_a_part_of_a_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = gguf.GGUFWriter.write_header_to_file

    def write(writer: gguf.GGUFWriter) -> None:
        writer.add_uint16("split.count", 3)
        plain(writer)

    monkeypatch.setattr(gguf.GGUFWriter, "write_header_to_file", write)
    write_llama_like(tmp_path / "part.gguf")
    answer = refusal(tmp_path / "part.gguf")
    assert "one of 3 parts" in answer.message
    assert "--merge" in answer.hint


def test_without_the_package_the_extra_is_named(
    llama: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packages, "find_spec", lambda _name: None)
    answer = refusal(llama)
    assert answer.kind is FailureKind.MISSING_DEPENDENCY
    assert answer.hint == "pip install 'normscope[gguf]'"


def test_a_folder_that_holds_one_points_to_it(llama: Path) -> None:
    with pytest.raises(NormscopeError) as caught:
        resolve_checkpoint(str(llama.parent))
    assert caught.value.hint == f"name the GGUF file in it: {llama}"


def test_blocks_cannot_be_left_in_the_file(llama: Path) -> None:
    with pytest.raises(UsageError, match="GGUF"):
        load_model(resolve_checkpoint(str(llama)), offload=Offload())


def test_nothing_is_printed(llama: Path, capfd: pytest.CaptureFixture[str]) -> None:
    load_model(resolve_checkpoint(str(llama)))
    assert capfd.readouterr() == ("", "")


def test_weights_that_lie_beside_the_file_are_not_taken_for_its_own(llama: Path) -> None:
    (llama.parent / "model.safetensors").write_bytes(b"of another model")
    found = inspected(llama)
    assert found.stored is not None
    assert found.stored.container == "gguf"
    assert found.warnings == ()


def with_vocabulary(path: Path, count: int) -> None:
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_block_count(2)
    writer.add_embedding_length(16)
    writer.add_feed_forward_length(32)
    writer.add_head_count(2)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_token_list([f"token {number}" for number in range(count)])
    writer.add_token_scores([float(number) for number in range(count)])
    writer.add_token_types([1] * count)
    values = np.zeros((4, 32), dtype=np.float32)
    kind = gguf.GGMLQuantizationType.Q5_0
    writer.add_tensor("x", gguf.quantize(values, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


class TestLongVocabularies:
    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        with_vocabulary(tmp_path / "long.gguf", 5000)
        return tmp_path / "long.gguf"

    def test_texts_are_stepped_over_and_all_else_is_read(self, path: Path) -> None:
        usual, short = gguf.GGUFReader(path), short_reader()(path)
        assert list(usual.fields) == list(short.fields)
        for name, field in usual.fields.items():
            assert len(short.fields[name].data) == len(field.data)
            assert short.fields[name].types == field.types
            if len(field.data) < 100:
                assert short.fields[name].contents() == field.contents()
        assert [item.name for item in short.tensors] == ["x"]

    def test_no_array_is_made_of_each_text(
        self, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        texts = []
        usual = gguf.GGUFReader._get_str

        def counted(reader: gguf.GGUFReader, offset: int) -> object:
            texts.append(offset)
            return usual(reader, offset)

        monkeypatch.setattr(gguf.GGUFReader, "_get_str", counted)
        found = read_gguf_config(resolve_checkpoint(str(path)))
        assert found.vocab_size == 5000
        assert found.rms_norm_eps == 1e-5
        assert 0 < len(texts) < 100

    def test_the_usual_reader_is_back_afterwards(self, path: Path) -> None:
        usual = gguf.GGUFReader
        read_gguf_config(resolve_checkpoint(str(path)))
        assert gguf.GGUFReader is usual

    def test_memory_is_counted_of_blocks_that_only_gguf_knows(self, path: Path) -> None:
        note = memory_note(resolve_checkpoint(str(path)), torch.float32)
        assert note.endswith(f"which takes {4 * 32 * 4} bytes of memory")
