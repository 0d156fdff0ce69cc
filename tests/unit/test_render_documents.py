"""The JSON documents, key by key as the contract has them."""

import json
import math
from dataclasses import replace

import pytest

from golden.cases import FAILURE
from golden.inspections import albert, bert, hostile, llama
from normscope.inspection import Answer, Placement
from normscope.render.documents import render_json, render_json_line
from normscope.render.plain import number

INSPECTION_KEYS = {
    "schema", "target", "versions", "model", "weights", "placement", "stacks", "blocks", "norms",
    "towers", "assumptions", "warnings",
}  # fmt: skip
BRANCH_KEYS = {
    "kind", "placement", "sites", "formula", "parallel", "shared_norm", "add", "norms",
}  # fmt: skip
NORM_KEYS = {
    "name", "module", "call", "calls", "role", "block", "kind", "axes", "shape", "groups", "eps",
    "eps_position", "gain", "bias", "weight", "bias_name", "statistics_dtype", "gain_dtype",
    "cast", "readers", "foldable", "foldable_reason",
}  # fmt: skip


def document(answer: Answer) -> dict[str, object]:
    return json.loads(render_json(answer), parse_constant=pytest.fail)


def test_keys_are_those_of_the_contract() -> None:
    whole = document(bert())
    assert whole["schema"] == "normscope.inspection/1"
    assert set(whole) == INSPECTION_KEYS
    assert set(whole["model"]) == {"class", "model_type", "revision", "parameters", "dtype"}
    assert set(whole["stacks"][0]) == {"path", "blocks", "placement", "variants"}
    assert set(whole["stacks"][0]["variants"][0]) == {"indices", "placement"}
    block = whole["blocks"][0]
    assert set(block) == {"path", "stack", "index", "calls", "placement", "branches"}
    assert set(block["branches"][0]) == BRANCH_KEYS
    assert set(whole["norms"][0]) == NORM_KEYS


def test_values_are_those_of_the_inspection() -> None:
    whole = document(bert())
    branch = whole["blocks"][0]["branches"][0]
    assert branch["formula"] == "N(x + f(x))"
    assert branch["sites"] == ["trunk"]
    assert branch["norms"] == {
        "branch_input": [],
        "inside_branch": [],
        "branch_output": [],
        "trunk": ["encoder.layer.0.attention.output.LayerNorm"],
    }
    assert whole["norms"][1]["eps"] == 1e-12
    assert whole["norms"][1]["readers"] == ["encoder.layer.0.intermediate.dense"]


def test_every_call_is_a_row() -> None:
    calls = [norm["call"] for norm in document(albert())["norms"] if norm["calls"] == 12]
    assert sorted(calls) == sorted([*range(12), *range(12)])


def test_only_an_undecided_branch_has_a_reason() -> None:
    branch = document(hostile())["blocks"][0]["branches"][0]
    assert set(branch) == {*BRANCH_KEYS, "reason"}


@pytest.mark.parametrize(
    ("value", "written"),
    [(math.nan, "NaN"), (math.inf, "Infinity"), (-math.inf, "-Infinity"), (0.5, 0.5), (None, None)],
)
def test_numbers_that_json_lacks_are_strings(value: float | None, written: object) -> None:
    assert number(value) == written


def test_a_failure_says_why_and_what_next() -> None:
    assert json.loads(render_json_line(FAILURE)) == {
        "schema": "normscope.failure/1",
        "target": "./broken",
        "kind": "no_config",
        "message": "there is no config.json in this directory",
        "hint": "name a checkpoint's directory",
    }


@pytest.mark.parametrize("answer", [bert(), hostile(), FAILURE])
def test_a_line_is_one_line_of_plain_characters(answer: Answer) -> None:
    line = render_json_line(answer)
    assert line.endswith("\n")
    assert line[:-1].isascii()
    assert line[:-1].isprintable()


def test_lone_surrogates_survive() -> None:
    made = replace(llama(depth=1), target="\ud800")
    assert json.loads(render_json(made).encode("utf-8"))["target"] == "\ud800"


def test_keys_are_sorted_at_every_depth() -> None:
    def check(value: object) -> None:
        if isinstance(value, dict):
            assert list(value) == sorted(value)
        for item in value.values() if isinstance(value, dict) else value or ():
            if isinstance(item, dict | list):
                check(item)

    check(document(bert()))


def test_equal_answers_are_equal_bytes() -> None:
    assert render_json(bert()) == render_json(bert())
    assert render_json(bert()) != render_json(replace(bert(), placement=Placement.MIXED))
