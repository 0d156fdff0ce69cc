"""Weights and settings that are no good numbers: findings, never a crash, never NaN as a value."""

import json
import math
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from typer.testing import CliRunner, Result

from normscope.cli.app import app
from saved_models import save_bert, save_tokenizer

GAIN = "encoder.layer.0.attention.output.LayerNorm.weight"
EMBEDDINGS = "embeddings.word_embeddings.weight"
Weights = dict[str, torch.Tensor]


def run(*arguments: str) -> Result:
    result = CliRunner().invoke(app, list(arguments))
    assert "bug in normscope" not in result.stderr
    return result


def strict(text: str) -> object:
    def refuse(name: str) -> None:
        raise ValueError(name)

    return json.loads(text, parse_constant=refuse)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> str:
    return save_bert(tmp_path_factory.mktemp("base"))


def with_weights(base: str, folder: Path, change: Callable[[Weights], object]) -> str:
    shutil.copytree(base, folder, dirs_exist_ok=True)
    weights = load_file(folder / "model.safetensors")
    change(weights)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    return str(folder)


def with_eps(base: str, folder: Path, eps: float) -> str:
    shutil.copytree(base, folder, dirs_exist_ok=True)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"layer_norm_eps": eps}))
    return str(folder)


def filled(value: float, *names: str) -> Callable[[Weights], object]:
    return lambda weights: [weights[name].fill_(value) for name in names or weights]


@pytest.mark.parametrize(
    ("change", "codes"),
    [
        (filled(math.nan, GAIN), {"NS406"}),
        (filled(math.inf, GAIN), {"NS406"}),
        (filled(math.nan), {"NS406"}),
        (filled(math.inf, EMBEDDINGS), {"NS406"}),
        (filled(1e38, EMBEDDINGS), {"NS403", "NS406"}),
        (filled(0.0, GAIN), {"NS404"}),
        (filled(0.0), {"NS404"}),
    ],
)
def test_every_view_of_such_weights_says_so(
    base: str, tmp_path: Path, change: Callable[[Weights], object], codes: set[str]
) -> None:
    target = with_weights(base, tmp_path / "m", change)
    measured = [target, "--input", "the norm keeps"]
    document = strict(run("stats", *measured, "-f", "json").stdout)
    assert isinstance(document, dict)
    assert codes <= {finding["code"] for finding in document["findings"]}
    for view in (["--view", "summary"], ["--view", "tokens"], ["--view", "heatmap"], ["--verify"]):
        shown = run("stats", *measured, *view)
        assert (shown.exit_code, shown.stderr) == (0, "")
    saved = [str(tmp_path / f"rows.{kind}") for kind in ("csv", "jsonl", "safetensors", "parquet")]
    for path in saved:
        assert run("stats", *measured, "--save", path).exit_code == 0


def test_a_picture_of_zeros_is_drawn_quietly(base: str, tmp_path: Path) -> None:
    target = with_weights(base, tmp_path / "m", filled(0.0))
    drawn = run("stats", target, "-i", "the norm", "--plot", str(tmp_path / "p.svg"), "--quiet")
    assert (drawn.exit_code, drawn.stderr) == (0, "")


def test_a_difference_that_is_no_number_comes_first(base: str, tmp_path: Path) -> None:
    def change(weights: Weights) -> None:
        weights[GAIN][3] = math.nan
        weights[GAIN.replace("0", "1")].fill_(7.0)

    told = run("diff", base, with_weights(base, tmp_path / "m", change)).stdout
    assert "largest difference nan" in told
    rows = [line for line in told.splitlines() if line.strip().startswith("encoder.layer.")]
    assert [row.split()[0] for row in rows] == [GAIN, GAIN.replace("0", "1")]


@pytest.mark.parametrize("eps", [math.nan, math.inf, -1.0])
def test_an_impossible_eps_is_said_by_every_command(base: str, tmp_path: Path, eps: float) -> None:
    target = with_eps(base, tmp_path / "m", eps)
    shown = run("inspect", target, "--verify")
    assert f"eps is {eps:g} in embeddings.LayerNorm, encoder.layer.0-1." in shown.stdout
    assert f"its eps is {eps:g}" in shown.stdout
    assert "report it" not in shown.stderr
    strict(run("inspect", target, "-f", "json").stdout)
    codes = run("stats", target, "-i", "the norm").stdout
    assert "NS404" in codes if eps == math.inf else "NS406" in codes
    audited = strict(run("audit", target, "-f", "json").stdout)
    assert isinstance(audited, dict)
    found = [f for t in audited["targets"] for f in t["findings"] if f["code"] == "NS202"]
    assert len(found) > 0
    assert {finding["severity"] for finding in found} == {"error"}


def test_eps_of_zero_before_equal_values_is_found(base: str, tmp_path: Path) -> None:
    target = with_eps(with_weights(base, tmp_path / "m", filled(0.0)), tmp_path / "n", 0.0)
    assert "NS406" in run("stats", target, "-i", "the norm").stdout


@pytest.mark.parametrize(
    "config",
    [
        transformers.BertConfig(
            vocab_size=10, hidden_size=1, num_hidden_layers=1, num_attention_heads=1,
            intermediate_size=2,
        ),
        transformers.LlamaConfig(
            vocab_size=10, hidden_size=1, num_hidden_layers=1, num_attention_heads=1,
            num_key_value_heads=1, head_dim=2, intermediate_size=2,
        ),
    ],
)  # fmt: skip
def test_a_norm_over_one_value(config: transformers.PretrainedConfig, tmp_path: Path) -> None:
    torch.manual_seed(0)
    transformers.AutoModel.from_config(config).save_pretrained(tmp_path)
    save_tokenizer(tmp_path)
    measured = run("stats", str(tmp_path), "-i", "the norm keeps", "-f", "json")
    assert measured.exit_code == 0
    strict(measured.stdout)
    verified = run("inspect", str(tmp_path), "--verify")
    assert verified.exit_code == 0
    assert "it normalizes single values" in verified.stdout
    assert "norm over one element" in verified.stdout
    assert "disagree" not in verified.stderr


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        (["--input-ids", "1,-1"], "the token id -1, and the vocabulary has 10 entries"),
        (["--input-ids", "1,10"], "the token id 10, and the vocabulary has 10 entries"),
        (["--input-ids", f"{2**70}"], f"the token id {2**70}"),
        (["--input-ids", "9" * 5000], "--input-ids takes whole numbers"),
        (["--input-ids", ","], "--input-ids is empty"),
        (["--input", " "], "--input is empty"),
        (["--input", "the \udcff"], "input 1 is no text: it has half of a character at 4"),
        (["--input-ids", "1," * 13], "input 1 has 13 tokens, and the model has 12 positions"),
    ],
)
def test_inputs_that_no_model_takes_are_usage_errors(
    base: str, typed: list[str], told: str
) -> None:
    result = run("stats", base, *typed)
    assert (result.exit_code, result.stdout) == (2, "")
    assert told in result.stderr


def test_half_a_character_in_a_line_of_json_is_a_usage_error(base: str, tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text('{"text": "the"}\n{"text": "\\ud800"}\n')
    result = run("stats", base, "--input-file", str(tmp_path / "t.jsonl"))
    assert result.exit_code == 2
    assert "input 2 is no text" in result.stderr
