"""`normscope diff` on real targets."""

import json

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
    "num_key_value_heads": 1,
}


def run(*arguments):
    return CliRunner().invoke(app, ["diff", *map(str, arguments)])


@pytest.fixture
def ports(tmp_path):
    """Return one model's weights under two classes."""
    torch.manual_seed(0)
    llama = transformers.LlamaForCausalLM(transformers.LlamaConfig(**SHAPE))
    with torch.no_grad():
        for value in llama.parameters():
            if value.dim() == 1:
                value.normal_()
    mistral = transformers.MistralForCausalLM(transformers.MistralConfig(**SHAPE))
    mistral.load_state_dict(llama.state_dict())
    for name, model in (("llama", llama), ("mistral", mistral)):
        model.save_pretrained(tmp_path / name)
    return tmp_path / "llama", tmp_path / "mistral"


def changed(folder, name, change):
    tensors = load_file(folder / "model.safetensors")
    tensors[name] = change(tensors[name])
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def test_a_port_with_equal_weights_has_no_difference(ports):
    result = run(*ports)
    assert result.exit_code == 0
    assert "no difference: 7 norm calls" in result.stdout
    assert "values of 7 parameters compared, largest difference 0\n" in result.stdout


def test_a_changed_gain_is_found_and_a_tolerance_allows_it(ports):
    name = "model.layers.1.input_layernorm.weight"

    def nudged(value):
        value[5] += 0.25
        return value

    changed(ports[1], name, nudged)
    document = json.loads(run(*ports, "-f", "json").stdout)
    (found,) = [value for value in document["values"] if value["largest"]]
    assert (found["left"], found["channel"]) == (name, 5)
    assert found["largest"] == pytest.approx(0.25)
    assert run(*ports).exit_code == 1
    assert run(*ports, "--tolerance", found["relative"] * 1.01).exit_code == 0
    assert run(*ports, "--tolerance", found["relative"] * 0.99).exit_code == 1


def test_a_gain_that_is_not_a_number_differs(ports):
    changed(ports[1], "model.norm.weight", lambda value: value * float("nan"))
    result = run(*ports, "--tolerance", "1e9", "-f", "json")
    assert result.exit_code == 1
    assert [v["largest"] for v in json.loads(result.stdout)["values"] if v["largest"]] == ["NaN"]


def with_nan(*channels):
    def change(value):
        for channel in channels:
            value[channel] = float("nan")
        return value

    return change


def test_the_same_nan_at_the_same_place_is_equal_and_told(ports):
    for port in ports:
        changed(port, "model.norm.weight", with_nan(3, 4))
    result = run(*ports)
    assert result.exit_code == 0
    told = " ".join(result.stdout.split())
    assert "no difference" in told
    assert "NaN at the same places on both sides: model.norm.weight (2 channels)" in told
    document = json.loads(run(*ports, "-f", "json").stdout)
    assert document["equal"]
    assert {v["left"]: v["both_nan"] for v in document["values"] if v["both_nan"]} == {
        "model.norm.weight": 2
    }


def test_a_nan_at_another_place_differs(ports):
    for port, channel in zip(ports, (3, 4), strict=True):
        changed(port, "model.norm.weight", with_nan(channel))
    document = json.loads(run(*ports, "-f", "json").stdout)
    (found,) = [value for value in document["values"] if value["largest"]]
    assert (found["largest"], found["channel"], found["both_nan"]) == ("NaN", 3, 0)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_what_both_have_that_is_no_number_hides_no_other_difference(ports, value):
    def change(gain, *, more):
        gain[3] = value
        gain[5] = 2.0 + more
        return gain

    for port, more in zip(ports, (0.0, 0.5), strict=True):
        changed(port, "model.norm.weight", lambda gain, more=more: change(gain, more=more))
    document = json.loads(run(*ports, "-f", "json").stdout)
    (found,) = [value for value in document["values"] if value["largest"]]
    assert found["largest"] == pytest.approx(0.5)
    assert found["channel"] == 5
    assert 0.0 < found["relative"] < 1.0
    assert not document["equal"]


def test_an_eps_that_is_nan_on_both_sides_is_no_difference(ports):
    for port in ports:
        config = json.loads((port / "config.json").read_text())
        text = json.dumps({**config, "rms_norm_eps": float("nan")})
        (port / "config.json").write_text(text)
    assert "no difference" in run(*ports).stdout


def test_another_eps_is_one_row_for_all_blocks(ports):
    config = json.loads((ports[1] / "config.json").read_text())
    (ports[1] / "config.json").write_text(json.dumps({**config, "rms_norm_eps": 1e-5}))
    result = run(*ports)
    assert result.exit_code == 1
    rows = [line.split() for line in result.stdout.splitlines() if " eps " in line]
    assert rows == [
        ["model.layers.*.input_layernorm", "0-2", "eps", "1e-06", "1e-05"],
        ["model.layers.*.post_attention_layernorm", "0-2", "eps", "1e-06", "1e-05"],
        ["model.norm", "eps", "1e-06", "1e-05"],
    ]


def test_placements_differ_and_names_have_no_part():
    document = json.loads(run("demo:pre-norm", "demo:post-norm", "-f", "json").stdout)
    facts = {(found["fact"], found["left"], found["right"]) for found in document["differences"]}
    assert ("placement", "pre-norm", "post-norm") in facts
    assert ("final norms", "1", "0") in facts


def test_a_norm_that_only_one_side_has():
    document = json.loads(run("type:llama", "type:qwen3", "-f", "json").stdout)
    alone = {
        (found["left"], found["right"])
        for found in document["differences"]
        if found["fact"] == "norm"
    }
    assert alone == {("none", "inside branch")}


def test_markdown_says_the_same():
    result = run("type:bert", "type:bert", "-f", "markdown")
    assert result.exit_code == 0
    assert result.stdout.startswith("### `type:bert` and `type:bert`\n\nno difference: 25 norm")
    assert "weights not compared" in result.stdout


def test_each_target_without_an_answer_is_told():
    result = run("type:nope", "./nowhere", "-f", "json")
    assert result.exit_code == 3
    kinds = [json.loads(line)["kind"] for line in result.stdout.splitlines()]
    assert kinds == ["unknown_architecture", "not_found"]


LOST = "model.layers.1.input_layernorm.weight"


def rewritten(folder, change):
    tensors = load_file(folder / "model.safetensors")
    change(tensors)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def without_it(tensors):
    del tensors[LOST]


def differences(ports):
    result = run(*ports, "-f", "json")
    document = json.loads(result.stdout)
    assert document["equal"] is (result.exit_code == 0) is (not document["differences"])
    return [(d["where"], d["left"], d["right"]) for d in document["differences"]]


def test_a_gain_that_one_sides_weights_lack_is_named(ports):
    rewritten(ports[1], without_it)
    assert differences(ports) == [(LOST, "stored with shape 16", "missing from B's weights")]
    assert differences(ports[::-1]) == [(LOST, "missing from A's weights", "stored with shape 16")]
    table = run(*ports)
    assert table.exit_code == 1
    assert "different in 1 stored tensor; 7 norm calls matched" in table.stdout
    assert "model.layers.*.input_layernorm.weight" in table.stdout
    markdown = run(*ports, "-f", "markdown")
    assert markdown.exit_code == 1
    assert "| `stored with shape 16` | `missing from B's weights` |" in markdown.stdout


def test_what_both_sides_lack_alike_is_equal(ports):
    for folder in ports:
        rewritten(folder, without_it)
    assert differences(ports) == []


@pytest.mark.parametrize(
    ("value", "told"), [(torch.ones(32), "32"), (torch.tensor(1.0), "scalar")], ids=["32", "0-d"]
)
def test_a_gain_that_is_stored_in_another_shape_is_named(ports, value, told):
    changed(ports[1], LOST, lambda _: value)
    assert differences(ports) == [(LOST, "stored with shape 16", f"stored with shape {told}")]


def test_gains_of_another_shape_on_both_sides_are_compared_by_value(ports):
    for folder, gain in zip(ports, (1.0, 2.0), strict=True):
        changed(folder, LOST, lambda _, gain=gain: torch.full((32,), gain))
    document = json.loads(run(*ports, "-f", "json").stdout)
    assert document["differences"] == []
    assert [v["left"] for v in document["values"] if v["largest"] == 1.0] == [LOST]
    assert not document["equal"]


@pytest.mark.parametrize("name", ["model.norm.bias", "model.layers.7.input_layernorm.weight"])
def test_a_tensor_more_among_the_norms_of_one_side_is_named(ports, name):
    more = {name: torch.ones(16)}
    rewritten(ports[0], lambda tensors: tensors.update(more))
    told = "stored with shape 16, and no parameter reads it"
    assert differences(ports) == [(name, told, "missing from B's weights")]
    assert differences(ports[::-1]) == [(name, "missing from A's weights", told)]
    rewritten(ports[1], lambda tensors: tensors.update(more))
    assert differences(ports) == []


def test_a_tensor_more_that_is_no_norms_is_none_of_its_differences(ports):
    rewritten(ports[0], lambda tensors: tensors.update({"model.extra": torch.ones(16)}))
    assert differences(ports) == []


def test_a_side_without_weights_leaves_them_uncompared(ports):
    rewritten(ports[0], without_it)
    (ports[1] / "model.safetensors").unlink()
    result = run(*ports)
    assert result.exit_code == 0
    assert "weights not compared" in result.stdout


def test_the_help_does_not_promise_standard_input():
    assert "standard input" not in " ".join(run("--help").stdout.split())
