"""Whether the stream fits float16: said where norms read it in a run of float32, else left open."""

import json
import math
from dataclasses import replace

import pytest

from normscope.half_precision import float16_fit
from normscope.inspection import ModelFacts, Role
from normscope.render.page import Page
from normscope.render.statistics_documents import render_statistics_json
from normscope.render.statistics_float16 import float16_sentence
from normscope.render.statistics_markdown import render_statistics_markdown
from normscope.render.statistics_summary import render_statistics
from normscope.statistics import (
    InputFacts,
    KeptEntries,
    LeftOut,
    Moments,
    NormStatistics,
    Statistics,
    Token,
)

TOKENS = tuple(
    Token(sequence=0, position=place, id=place, text="abc"[place], special=False)
    for place in range(3)
)
ABOVE = math.nextafter(65504.0, math.inf)


def moments(*peak: float) -> Moments:
    return Moments(
        mean=(0.0,) * 3, variance=(1.0,) * 3, peak=peak or (3.0, 2.0, 1.0), peak_channel=(7, 8, 9)
    )


def norm(name: str, *peak: float, role: Role = Role.BRANCH_INPUT) -> NormStatistics:
    return NormStatistics(
        name=name,
        call=0,
        role=role,
        kind="LayerNorm",
        block=name.rpartition(".")[0] or None,
        before=moments(*peak),
        after=moments(),
    )


def statistics_of(*norms: NormStatistics) -> Statistics:
    facts = ModelFacts(
        class_name="M", model_type=None, revision=None, parameters=1, dtype="float32"
    )
    return Statistics(
        target="t",
        versions={},
        model=facts,
        dtype="float32",
        device="cpu",
        input=InputFacts(sequences=1, tokens=3, padding=0, special=0),
        tokens=TOKENS,
        norms=norms,
    )


def document(statistics: Statistics) -> object:
    return json.loads(render_statistics_json(statistics), parse_constant=pytest.fail)["float16"]


def test_a_stream_that_just_fits_is_said_to_fit() -> None:
    found = statistics_of(norm("h.0.n", 3.0, 60.0, 1.0), norm("h.1.n", 5.0, 9.0, 65504.0))
    assert document(found) == {
        "fits": True,
        "largest": 65504.0,
        "where": "h.1.n",
        "call": 0,
        "point": "before",
        "channel": 9,
        "token": {"sequence": 0, "position": 2, "id": 2, "text": "c", "special": False},
        "first": None,
    }
    sentence = (
        "float16: the stream fits; its largest value is 65,504 (of 65,504) before h.1.n "
        'at 2 "c", channel 9'
    )
    assert float16_sentence(found) == sentence
    assert f"  {sentence}\n" in render_statistics(found, Page())
    assert "- float16: the stream fits; " in render_statistics_markdown(found)


def test_a_stream_that_just_does_not_fit_is_named_with_its_first_block() -> None:
    found = statistics_of(
        norm("h.0.n", 65504.0, 1.0, 1.0),
        norm("h.1.n", 3.0, ABOVE, 1.0),
        norm("h.2.n", 3.0, 90000.0, 1.0),
        norm("h.3.n", 3.0, 80000.0, 1.0),
    )
    fit = document(found)
    assert isinstance(fit, dict)
    assert (fit["fits"], fit["largest"], fit["where"]) == (False, 90000.0, "h.2.n")
    assert (fit["first"], fit["token"]["position"]) == ("h.1", 1)
    assert float16_sentence(found) == (
        "float16: the stream does not fit from h.1 on; up to 90,000 (of 65,504) before h.2.n "
        'at 1 "b", channel 8'
    )


@pytest.mark.parametrize("wrong", [math.nan, math.inf])
def test_what_is_no_number_does_not_fit(wrong: float) -> None:
    fit = float16_fit(statistics_of(norm("h.0.n"), norm("h.1.n", 1.0, wrong, 9e4)))
    assert fit is not None
    assert fit.first is not None
    assert (fit.first.norm.name, fit.largest.entry) == ("h.1.n", 1)


def test_only_the_stream_counts() -> None:
    inner = norm("h.0.q", 9e4, 1.0, 1.0, role=Role.INSIDE_BRANCH)
    heads = replace(norm("h.0.k", 9e4, 1.0, 1.0), rows_per_token=4)
    out = replace(norm("h.0.n"), after=moments(9e4, 1.0, 1.0))
    fit = float16_fit(statistics_of(out, inner, heads))
    assert fit is not None
    assert (fit.first, fit.largest.value) == (None, 3.0)
    # What a trunk norm gives is the stream itself.
    trunk = float16_fit(statistics_of(replace(out, role=Role.TRUNK)))
    assert trunk is not None
    assert trunk.first is not None
    assert (trunk.first.point, trunk.first.value) == ("after", 9e4)


def test_where_norms_do_not_read_the_stream_nothing_is_promised() -> None:
    branch = norm("h.0.n", role=Role.BRANCH_OUTPUT)
    assert document(statistics_of(branch)) is None
    final = norm("n", role=Role.FINAL)
    assert float16_fit(statistics_of(branch, final)) is None
    assert "float16" not in render_statistics(statistics_of(branch, final), Page())
    # That it does not fit is certain from one value.
    assert float16_fit(statistics_of(branch, norm("n", ABOVE, 1.0, 1.0, role=Role.FINAL)))


def test_where_only_some_norms_were_asked_for_nothing_is_promised() -> None:
    some = replace(statistics_of(norm("h.0.n")), pattern="h.0.*")
    assert float16_fit(some) is None
    too_large = replace(some, norms=(norm("h.0.n", ABOVE, 1.0, 1.0),))
    assert float16_fit(too_large) is not None


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_a_run_in_half_precision_gives_no_answer(dtype: str) -> None:
    found = statistics_of(norm("h.0.n"))
    assert float16_fit(found) is not None
    assert document(replace(found, dtype=dtype)) is None
    assert document(replace(found, dtype="float64")) is not None


def test_a_summarized_run_names_the_token_that_was_kept() -> None:
    kept = KeptEntries(places=(10, 20, 30), tokens=TOKENS)
    one = replace(norm("h.0.n", 3.0, 70.0, 1.0), kept=kept)
    found = replace(statistics_of(one), tokens=(), left_out=LeftOut(over=10, quantile_error=0.003))
    fit = document(found)
    assert isinstance(fit, dict)
    assert (fit["largest"], fit["token"]["text"]) == (70.0, "b")
