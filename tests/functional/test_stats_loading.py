"""How `normscope stats` is told to load a model, as it is typed."""

import json
from pathlib import Path

import pytest
import torch
import transformers
from typer.testing import CliRunner, Result

from normscope.cli.app import app
from normscope.cli.stats_loading import read_memory
from normscope.errors import UsageError
from specimens.gguf_files import write_llama_like


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["stats", *arguments, "--input-ids", "3,4,5"])


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("llama")
    config = transformers.LlamaConfig(
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=1,
        intermediate_size=32,
        vocab_size=40,
        bos_token_id=1,
        eos_token_id=2,
    )
    torch.manual_seed(0)
    transformers.LlamaForCausalLM(config).save_pretrained(folder)
    return str(folder)


@pytest.mark.parametrize(
    "options", [["--max-memory", "4kB"], ["--device-map", "auto", "--max-memory", "0"]]
)
def test_weights_may_stay_in_their_files(llama: str, options: list[str]) -> None:
    plain, spread = run(llama, "-f", "json"), run(llama, "-f", "json", *options)
    assert spread.exit_code == 0, spread.stderr
    assert json.loads(spread.stdout) == json.loads(plain.stdout)
    assert spread.stderr == ""


@pytest.mark.parametrize(
    ("text", "size"), [("2GB", 2 * 10**9), ("512MiB", 512 << 20), ("1.5 gb", 15 * 10**8), ("7", 7)]
)
def test_sizes_are_read_as_they_are_written(text: str, size: int) -> None:
    assert read_memory(text) == size


@pytest.mark.parametrize("text", ["", "GB", "2XB", "-1GB", "two"])
def test_what_is_no_size_is_a_usage_error(text: str) -> None:
    with pytest.raises(UsageError, match="is no size"):
        read_memory(text)


def test_what_cannot_be_combined_is_a_usage_error(llama: str) -> None:
    result = run(llama, "--device-map", "elsewhere")
    assert result.exit_code == 2
    assert "they are auto, balanced, balanced_low_0, sequential" in result.stderr


def test_attention_is_computed_as_asked(llama: str) -> None:
    eager = json.loads(run(llama, "-f", "json", "--attn-implementation", "eager").stdout)
    usual = json.loads(run(llama, "-f", "json").stdout)
    for one, other in zip(eager["norms"], usual["norms"], strict=True):
        assert one["before"]["variance"] == pytest.approx(other["before"]["variance"], rel=1e-4)


@pytest.mark.parametrize("name", ["flash", "flash_attention_2"])
def test_an_attention_that_is_not_there_is_a_usage_error(llama: str, name: str) -> None:
    result = run(llama, "--attn-implementation", name)
    assert result.exit_code == 2
    assert f"--attn-implementation {name} cannot be had: " in result.stderr


def test_a_device_that_is_not_there_is_a_usage_error(llama: str) -> None:
    result = run(llama, "--device", "tpu")
    assert result.exit_code == 2
    assert "there is no device 'tpu' here" in result.stderr
    assert run(llama, "--device", "auto").exit_code == 0


def test_the_type_that_was_asked_for_is_told(llama: str) -> None:
    found = json.loads(run(llama, "-f", "json", "--dtype", "bfloat16").stdout)
    assert found["dtype"] == "bfloat16"


def test_the_memory_of_a_gguf_file_is_told_first(tmp_path: Path) -> None:
    path = tmp_path / "tiny.gguf"
    write_llama_like(path)
    result = run(str(path))
    assert result.exit_code == 0, result.stderr
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"{path}: ")
    assert "which takes" in line
    assert run(str(path), "--quiet").stderr == ""


def test_a_module_of_the_users_own_takes_the_type_that_was_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own_norm.py").write_text(
        "import torch\n\ndef build():\n    return torch.nn.LayerNorm(4), torch.eye(4)[None]\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    options = ["stats", "py:own_norm:build", "-f", "json", "--dtype", "bfloat16"]
    result = CliRunner().invoke(app, options)
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert (found["dtype"], found["model"]["dtype"]) == ("bfloat16", "bfloat16")
    assert found["norms"][0]["before"]["variance"] == [0.1875] * 4
