"""The views of `stats` as whole texts, from statistics made by hand."""

import json
import math
import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from normscope.inspection import ModelFacts, Role
from normscope.render.page import Page
from normscope.render.statistics_documents import render_statistics_json
from normscope.render.statistics_heatmap import render_statistics_heatmap
from normscope.render.statistics_markdown import render_statistics_markdown
from normscope.render.statistics_rows import render_statistics_csv
from normscope.render.statistics_stream import stream_growth
from normscope.render.statistics_summary import render_statistics
from normscope.render.statistics_tokens import render_statistics_tokens
from normscope.render.statistics_words import figure
from normscope.statistics import (
    InputFacts,
    Moments,
    NormStatistics,
    Statistics,
    StatisticsFinding,
    Token,
    summarize,
)

TERMINAL = Page(width=80)
PIPE = Page()


def moments(*variance: float, channel: int = 7) -> Moments:
    return Moments(
        mean=tuple(0.5 for _ in variance),
        variance=variance,
        peak=tuple(3 * abs(value) ** 0.5 for value in variance),
        peak_channel=tuple(channel for _ in variance),
    )


def norm(name: str, block: str | None, role: Role, *variance: float) -> NormStatistics:
    return NormStatistics(
        name=name,
        call=0,
        role=role,
        kind="LayerNorm",
        block=block,
        eps=1e-5,
        eps_position="inside",
        before=moments(*variance),
        after=moments(*(1.0 for _ in variance)),
    )


def statistics(texts: tuple[str, ...] = ("<s>", "the", " fox")) -> Statistics:
    tokens = tuple(
        Token(sequence=0, position=index, id=index, text=text, special=index == 0)
        for index, text in enumerate(texts)
    )
    norms = (
        norm("h.0.ln_1", "h.0", Role.BRANCH_INPUT, 0.02, 0.03, 0.04),
        norm("h.0.ln_2", "h.0", Role.BRANCH_INPUT, 900000.0, 0.3, 0.4),
        norm("h.1.ln_1", "h.1", Role.BRANCH_INPUT, 900000.0, 3.0, 4.0),
        norm("h.1.ln_2", "h.1", Role.BRANCH_INPUT, 40.0, 30.0, math.nan),
        norm("ln_f", None, Role.FINAL, 40.0, 300.0, 400.0),
        NormStatistics(
            name="stem.bn",
            call=0,
            role=Role.UNPLACED,
            kind="BatchNorm",
            rows_per_token=None,
            rows="2 channels",
            before=moments(1.5, 2.5),
            after=moments(1.0, 1.0),
        ),
        NormStatistics(
            name="spare",
            call=0,
            role=Role.UNPLACED,
            kind="LayerNorm",
            rows_per_token=None,
            problem="it was built and never ran",
        ),
    )
    return Statistics(
        target="./gpt",
        versions={"normscope": "1"},
        model=ModelFacts(
            class_name="GPT2Model",
            model_type="gpt2",
            revision=None,
            parameters=124439808,
            dtype="float32",
        ),
        dtype="float32",
        device="cpu",
        input=InputFacts(sequences=1, tokens=3, padding=0, special=1),
        tokens=tokens,
        norms=norms,
        findings=(
            StatisticsFinding(
                code="NS402",
                severity="warning",
                where="h.0.ln_2",
                message='token 0 "<s>" stands out: variance 900,000 before h.0.ln_2, '
                "2,250,000 times the median token's",
            ),
        ),
    )


def small() -> Statistics:
    whole = statistics()
    return replace(whole, norms=(whole.norms[1], *whole.norms[5:]))


SUMMARY = """\
GPT2Model   ./gpt   124M parameters, float32, cpu
  1 sequence, 3 tokens (1 special)

  NS402  token 0 "<s>" stands out: variance 900,000 before h.0.ln_2,
         2,250,000 times the median token's

  variance of the stream over depth, on a log scale
    median token    0.03      ▁▃▅   300
    largest token   900,000   █!▅   400   NaN in h.1
    h: the median token's variance grows 10,000 times over 2 blocks, 100 times
      a block

  variance                median       p99       max   at
  h.0
    ln_1        before      0.03    0.0398      0.04   2 " fox"
                after          1         1         1   0 "<s>"
    ln_2        before       0.4   882,000   900,000   0 "<s>"
                after          1         1         1   0 "<s>"
  h.1
    ln_1        before         4   882,000   900,000   0 "<s>"
                after          1         1         1   0 "<s>"
    ln_2        before        40       NaN       NaN   2 " fox"
                after          1         1         1   0 "<s>"
  ln_f          before       300       398       400   2 " fox"
                after          1         1         1   0 "<s>"
  stem.bn (1)   before         2      2.49       2.5   row 1
                after          1         1         1   row 0
  spare (2)
  (1) its rows are no tokens: 2 channels
  (2) it was built and never ran
"""

HEATMAP = """\
GPT2Model   ./gpt   124M parameters, float32, cpu
  1 sequence, 3 tokens (1 special)

  variance before each norm, by token
            0
  h.0.ln_1  .........
  h.0.ln_2  !!!::::::
  h.1.ln_1  !!!------
  h.1.ln_2  ======???
  ln_f      ===++++++
  . from 0.02  : from 0.181  - from 1.64  = from 14.8  + from 134  * from 1,210
    % from 11,000  @ from 99,400  ! over 100 times the norm's median token
  tokens:  0 "<s>"  1 "the"  2 " fox"
"""

TOKENS = """\
GPT2Model   ./gpt   124M parameters, float32, cpu
  1 sequence, 3 tokens (1 special)

h.0.ln_2   LayerNorm   input
                                     before                            after
             mean   variance   peak@channel   mean   variance   peak@channel
  0 "<s>"     0.5    900,000        2,850@7    0.5          1            3@7
  1 "the"     0.5        0.3         1.64@7    0.5          1            3@7
  2 " fox"    0.5        0.4          1.9@7    0.5          1            3@7

stem.bn   BatchNorm   unplaced   its rows are no tokens: 2 channels
                                  before                            after
          mean   variance   peak@channel   mean   variance   peak@channel
  row 0    0.5        1.5         3.67@7    0.5          1            3@7
  row 1    0.5        2.5         4.74@7    0.5          1            3@7

spare   LayerNorm   unplaced   it was built and never ran
"""

MARKDOWN = """\
### GPT2Model · `./gpt`

124M parameters, float32, cpu; 1 sequence, 3 tokens (1 special).

- NS402: token 0 "\\<s\\>" stands out: variance 900,000 before h.0.ln\\_2, \
2,250,000 times the median token's

| norm | median before | max before | at | median after | max after | at |  |
|---|---|---|---|---|---|---|---|
| `h.0.ln_2` | 0.4 | 900,000 | 0 "\\<s\\>" | 1 | 1 | 0 "\\<s\\>" |  |
| `stem.bn` | 2 | 2.5 | row 1 | 1 | 1 | row 0 | its rows are no tokens: 2 channels |
| `spare` |  |  |  |  |  |  | it was built and never ran |
"""


@pytest.mark.parametrize(
    ("view", "expected"),
    [(render_statistics, SUMMARY), (render_statistics_heatmap, HEATMAP)],
    ids=["summary", "heatmap"],
)
def test_whole_views_at_eighty_columns(
    view: Callable[[Statistics, Page], str], expected: str
) -> None:
    assert view(statistics(), TERMINAL) == expected


def test_the_tokens_of_each_norm_at_eighty_columns() -> None:
    assert render_statistics_tokens(small(), TERMINAL) == TOKENS


def test_markdown_shows_every_norm() -> None:
    assert render_statistics_markdown(small()) == MARKDOWN


VIEWS = [render_statistics, render_statistics_heatmap, render_statistics_tokens]


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.__name__)
def test_colour_repeats_what_the_characters_say(view: Callable[[Statistics, Page], str]) -> None:
    plain = view(statistics(), TERMINAL)
    colored = view(statistics(), Page(width=80, color=True))
    assert "\x1b[" in colored
    assert re.sub(r"\x1b\[[0-9;]*m", "", colored) == plain


def test_a_pipe_gets_the_same_words_and_no_line_is_broken() -> None:
    text = render_statistics(statistics(), PIPE)
    assert text.split() == SUMMARY.split()
    assert "grows 10,000 times over 2 blocks, 100 times a block\n" in text


HOSTILE = ("[red]x[/red]", "\x1b[31m\u202eevil", "a\nb")


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.__name__)
@pytest.mark.parametrize("page", [TERMINAL, PIPE, Page(width=80, color=True)])
def test_text_of_tokens_is_shown_and_never_obeyed(
    view: Callable[[Statistics, Page], str], page: Page
) -> None:
    text = view(statistics(HOSTILE), page)
    assert "[red]x[/red]" in text
    assert "\x1b[31m\u202e" not in text
    if view is not render_statistics:  # the summary names only the tokens that stand out
        assert "\\x1b[31m\\u202eevil" in text
        assert "a\\x0ab" in text


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.__name__)
def test_names_are_never_cut(view: Callable[[Statistics, Page], str]) -> None:
    long = "a.very.long.path.of.modules." * 4 + "norm"
    named = replace(statistics().norms[0], name=long, block=None)
    for page in (TERMINAL, PIPE):
        assert long in view(replace(statistics(), norms=(named,)), page)


def test_many_tokens_share_columns_on_a_terminal_and_none_in_a_pipe() -> None:
    tokens = tuple(
        Token(sequence=0, position=index, id=index, text=None, special=False)
        for index in range(300)
    )
    values = [1.0] * 300
    values[123] = 5000.0
    one = norm("n", None, Role.FINAL, *values)
    many = replace(statistics(), tokens=tokens, norms=(one,))
    row = next(
        line for line in render_statistics_heatmap(many, TERMINAL).splitlines() if "!" in line
    )
    assert len(row) <= 80
    assert row.index("!") == len("  n  ") + 123 // 4
    wide = next(line for line in render_statistics_heatmap(many, PIPE).splitlines() if "!" in line)
    assert len(wide) == len("  n  ") + 300


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0.0, "0"),
        (0.0048267, "0.00483"),
        (0.00054321, "5.43e-4"),
        (0.99999, "1"),
        (127.36, "127"),
        (-2.5, "-2.5"),
        (1234.0, "1,230"),
        (894000.0, "894,000"),
        (31000000.0, "3.1e7"),
        (math.nan, "NaN"),
        (-math.inf, "-inf"),
    ],
)
def test_figures_have_three_digits(value: float, expected: str) -> None:
    assert figure(value) == expected


def test_the_stream_is_read_before_each_block_and_before_the_final_norm() -> None:
    (growth,) = stream_growth(statistics())
    assert growth.stack == "h"
    assert growth.places == ("h.0", "h.1", "ln_f")
    assert growth.usual == (0.03, 4.0, 300.0)
    assert growth.factor() == pytest.approx(100)


def test_numbers_that_json_lacks_are_strings() -> None:
    document = json.loads(render_statistics_json(statistics()), parse_constant=pytest.fail)
    variance = document["norms"][3]["before"]["variance"]
    assert variance == [40.0, 30.0, "NaN"]
    assert document["norms"][3]["summary"]["before"]["variance"]["max"] == "NaN"
    assert document["norms"][6]["before"] is None
    assert document["norms"][6]["problem"] == "it was built and never ran"


def test_csv_leaves_empty_what_rows_of_no_token_lack() -> None:
    lines = render_statistics_csv(statistics()).splitlines()
    assert lines[1].startswith("h.0.ln_1,0,branch_input,LayerNorm,,0,0,0,<s>,True,0,0.5,0.02,")
    assert lines[-1].startswith("stem.bn,0,unplaced,BatchNorm,,,,,,,1,0.5,2.5,")


def test_a_summary_counts_nan_as_the_greatest() -> None:
    found = summarize((3.0, math.nan, 1.0, 2.0))
    assert (found.median, found.at_token) == (2.5, 1)
    assert math.isnan(found.maximum)
    assert summarize((1.0, 5.0, 5.0)).at_token == 1


def test_percentiles_lie_between_ranks() -> None:
    found = summarize(tuple(float(value) for value in range(101)))
    assert (found.median, found.p99, found.maximum) == (50.0, 99.0, 100.0)
    assert summarize((1.0, 2.0)).median == 1.5
