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
