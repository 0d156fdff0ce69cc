"""The views of `stats` as whole texts, from statistics made by hand."""

import csv
import io
import json
import math
import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from normscope.activations.chunks import Chunk, Columns, NormRows, ScaledColumns
from normscope.activations.row_table import RowTables
from normscope.activations.subject import Subject
from normscope.cli.options import Format
from normscope.cli.stats_views import View, text_of_statistics
from normscope.inspection import ModelFacts, Role
from normscope.render.page import Page
from normscope.render.statistics_documents import render_statistics_json
from normscope.render.statistics_heatmap import render_statistics_heatmap
from normscope.render.statistics_markdown import render_statistics_markdown
from normscope.render.statistics_pairs import pair_stacks
from normscope.render.statistics_plot import plot_statistics
from normscope.render.statistics_rows import csv_of_rows
from normscope.render.statistics_side_by_side import render_side_by_side
from normscope.render.statistics_stream import stream_growth
from normscope.render.statistics_summary import render_statistics
from normscope.render.statistics_tokens import render_statistics_tokens
from normscope.render.statistics_words import figure
from normscope.statistics import (
    InputFacts,
    KeptEntries,
    LeftOut,
    Moments,
    Normalized,
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
  float16: the stream does not fit from h.1 on; NaN before h.1.ln_2 at 2 "
    fox", channel 7

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
             before                        after
               mean   variance   peak@ch    mean   variance   peak@ch
  0 "<s>"       0.5    900,000   2,850@7     0.5          1       3@7
  1 "the"       0.5        0.3    1.64@7     0.5          1       3@7
  2 " fox"      0.5        0.4     1.9@7     0.5          1       3@7

stem.bn   BatchNorm   unplaced   its rows are no tokens: 2 channels
          before                        after
            mean   variance   peak@ch    mean   variance   peak@ch
  row 0      0.5        1.5    3.67@7     0.5          1       3@7
  row 1      0.5        2.5    4.74@7     0.5          1       3@7

spare   LayerNorm   unplaced   it was built and never ran
"""

MARKDOWN = """\
### GPT2Model · `./gpt`

124M parameters, float32, cpu; 1 sequence, 3 tokens (1 special).

- NS402: token 0 "\\<s\\>" stands out: variance 900,000 before h.0.ln\\_2, \
2,250,000 times the median token's
- float16: the stream fits; its largest value is 2,846 (of 65,504) before h.0.ln\\_2 at 0 \
"\\<s\\>", channel 7

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


WITH_NORMALIZED = """\
h.0.ln_1   LayerNorm   input
             before                        normalized              after
               mean   variance   peak@ch         mean   variance    mean   variance   peak@ch
  0 "<s>"       0.5       0.02   0.424@7            0        0.8     0.5          1       3@7
  1 "the"       0.5       0.03    0.52@7            0        0.9     0.5          1       3@7
  2 " fox"      0.5       0.04     0.6@7            0      0.999     0.5          1       3@7
"""


def test_the_normalized_point_has_columns_of_its_own_where_the_page_has_room() -> None:
    whole = statistics()
    normalized = Normalized(mean=(0.0, 0.0, 0.0), variance=(0.8, 0.9, 0.999))
    found = replace(whole, norms=(replace(whole.norms[0], normalized=normalized),))
    for page in (PIPE, Page(width=120)):
        assert render_statistics_tokens(found, page).endswith(WITH_NORMALIZED)
    narrow = render_statistics_tokens(found, TERMINAL)
    assert "  normalized: mean 0, variance 0.8 to 0.999\n" in narrow
    assert max(map(len, narrow.splitlines())) <= 80
    assert "    0.9  " not in narrow


def test_where_both_points_do_not_fit_side_by_side_one_stands_above_the_other() -> None:
    found = statistics(("<s>", "a_token_that_is_very_long_indeed", " fox"))
    lines = render_statistics_tokens(replace(found, norms=found.norms[:1]), TERMINAL).splitlines()
    assert [line.strip() for line in lines if "before" in line or "after" in line] == [
        "before", "after"
    ]  # fmt: skip
    assert sum("very_long" in line for line in lines) == 2
    assert max(map(len, lines)) <= 80
    assert len({len(line) for line in lines[5:9]}) == 1


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


def test_where_columns_are_shared_only_marked_tokens_are_named_and_shared_paths_once() -> None:
    tokens = tuple(
        Token(sequence=0, position=index, id=index, text=f"t{index}", special=False)
        for index in range(2000)
    )
    values = [1.0] * 2000
    values[1234], values[7] = 5000.0, math.nan
    norms = tuple(
        norm(f"model.layers.{layer}.ln", f"model.layers.{layer}", Role.BRANCH_INPUT, *values)
        for layer in range(100)
    )
    many = replace(statistics(), tokens=tokens, norms=norms)
    lines = render_statistics_heatmap(many, TERMINAL).splitlines()
    assert max(map(len, lines)) <= 80
    assert len(lines) < 112
    assert lines[4].endswith("names begin with model.layers.")
    assert lines[6].startswith("  0.ln   ?")
    assert lines[-1] == '  marked tokens:  7 "t7"  1234 "t1234"'
    wide = render_statistics_heatmap(many, PIPE).splitlines()
    assert wide[5].startswith("  model.layers.0.ln   .......?")
    assert wide[-1].startswith('  tokens:  0 "t0"  1 "t1"')


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


def test_csv_goes_from_token_to_token_and_leaves_empty_what_other_rows_lack() -> None:
    rows = RowTables().table_of(chunk_of(statistics()))
    lines = csv_of_rows(rows, header=True).splitlines()
    assert lines[1].startswith("h.0.ln_1,0,branch_input,LayerNorm,,0,0,0,<s>,True,0,0.5,0.02,")
    assert lines[2].startswith("h.0.ln_2,0,branch_input,LayerNorm,,0,0,0,<s>,True,0,0.5,900000.0,")
    assert lines[-1].startswith("stem.bn,0,unplaced,BatchNorm,,,,,,,1,0.5,2.5,")


def test_a_normalized_point_is_empty_where_it_is_not_known_and_nan_where_it_is_no_number() -> None:
    chunk = chunk_of(statistics())
    first, second = chunk.rows[:2]
    assert first is not None
    assert second is not None
    scaled = ScaledColumns(mean=np.zeros(3), variance=np.array([0.8, math.nan, 0.9]))
    known = replace(chunk, rows=(first, replace(second, scaled=scaled), *chunk.rows[2:]))
    rows = list(csv.DictReader(io.StringIO(csv_of_rows(RowTables().table_of(known), header=True))))
    found = {
        (row["norm"], row["position"]): (row["normalized_mean"], row["normalized_variance"])
        for row in rows
    }
    assert found["h.0.ln_1", "1"] == ("", "")
    assert [found["h.0.ln_2", place] for place in "012"] == [
        ("0.0", "0.8"), ("0.0", "NaN"), ("0.0", "0.9")
    ]  # fmt: skip


def test_rows_of_no_token_are_numbered_through_all_chunks() -> None:
    tables = RowTables()
    whole = statistics()
    chunk = chunk_of(replace(whole, norms=whole.norms[5:6], tokens=()))
    assert [tables.table_of(chunk).row.tolist() for _ in range(2)] == [[0, 1], [2, 3]]


def chunk_of(found: Statistics) -> Chunk:
    """Return the rows of made statistics as they come from a run."""
    return Chunk(
        subject=Subject(target=found.target, versions=found.versions, model=found.model),
        norms=tuple(replace(norm, before=None, after=None) for norm in found.norms),
        rows=tuple(
            None
            if norm.before is None or norm.after is None
            else NormRows(before=columns_of(norm.before), after=columns_of(norm.after))
            for norm in found.norms
        ),
        tokens=found.tokens,
    )


def columns_of(found: Moments) -> Columns:
    return Columns(
        mean=np.array(found.mean),
        variance=np.array(found.variance),
        peak=np.array(found.peak),
        channel=np.array(found.peak_channel),
    )


def test_a_summary_counts_nan_as_the_greatest() -> None:
    found = summarize((3.0, math.nan, 1.0, 2.0))
    assert (found.median, found.at_token) == (2.5, 1)
    assert math.isnan(found.maximum)
    assert summarize((1.0, 5.0, 5.0)).at_token == 1


def test_percentiles_lie_between_ranks() -> None:
    found = summarize(tuple(float(value) for value in range(101)))
    assert (found.median, found.p99, found.maximum) == (50.0, 99.0, 100.0)
    assert summarize((1.0, 2.0)).median == 1.5


# Two targets side by side.

SAME_NORMS = """\
A  GPT2Model   ./gpt   124M parameters, float32, cpu
B  GPT2Model   ./tuned   124M parameters, bfloat16, cpu
   1 sequence, 3 tokens (1 special)

  A  NS402  token 0 "<s>" stands out: variance 900,000 before
            h.0.ln_2, 2,250,000 times the median token's
  A  float16: the stream does not fit from h.1 on; NaN before h.1.ln_2 at 2 "
     fox", channel 7

  variance      median                         max
                     A         B     B/A         A         B       B/A
  h.0
    ln_1
      before      0.03      0.09       3      0.04      0.12         3
      after          1         1       1         1         1         1
    ln_2
      before       0.4       1.2       3   900,000   2,700,000       3
      after          1         1       1         1         1         1
  h.1
    ln_1
      before         4        12       3   900,000   2,700,000       3
      after          1         1       1         1         1         1
    ln_2
      before        40       120       3       NaN       NaN
      after          1         1       1         1         1         1
  ln_f
    before         300       900       3       400     1,200         3
    after            1         1       1         1         1         1
  only in A: stem.bn and spare
"""

OTHER_NORMS = """\
A  GPT2Model   ./gpt   124M parameters, float32, cpu
B  GPT2Model   ./post   124M parameters, float32, cpu
   1 sequence, 3 tokens (1 special)

  A  NS402  token 0 "<s>" stands out: variance 900,000 before
            h.0.ln_2, 2,250,000 times the median token's
  A  float16: the stream does not fit from h.1 on; NaN before h.1.ln_2 at 2 "
     fox", channel 7
  B  float16: the stream does not fit from h.1 on; NaN before h.1.ln_2 at 2 "
     fox", channel 7

  variance of the stream by depth, since the norms of the two differ
  before A's  before B's   median                      max
                                A        B    B/A        A        B    B/A
  h.0         h.0            0.03     0.03      1  900,000  900,000      1
  h.1         h.1               4        4      1      NaN      NaN
  ln_f                        300                      400
"""


def scaled(found: NormStatistics) -> NormStatistics:
    if found.before is None:
        return found
    return replace(found, before=moments(*(3 * value for value in found.before.variance)))


def test_two_models_with_the_same_norms_are_compared_norm_by_norm() -> None:
    first = statistics()
    norms = tuple(scaled(found) for found in first.norms[:5])
    second = replace(first, target="./tuned", dtype="bfloat16", norms=norms, findings=())
    assert render_side_by_side(first, second, TERMINAL) == SAME_NORMS
    assert text_of_statistics([first, second], Format.TABLE, View.SUMMARY, TERMINAL) == SAME_NORMS
    piped = render_side_by_side(first, second, PIPE)
    assert piped.split() == SAME_NORMS.split()


def test_two_models_with_other_norms_are_compared_by_depth() -> None:
    first = statistics()
    norms = tuple(replace(found, role=Role.TRUNK) for found in first.norms[:4])
    second = replace(first, target="./post", norms=norms, findings=())
    assert render_side_by_side(first, second, TERMINAL) == OTHER_NORMS


def test_stacks_of_other_depths_are_compared_at_equal_shares() -> None:
    first = statistics()
    norms = tuple(
        norm(f"x.{layer}.n", f"x.{layer}", Role.TRUNK, layer + 1.0, layer + 2.0, layer + 3.0)
        for layer in range(5)
    )
    (pair,) = pair_stacks(first, replace(first, norms=norms))
    assert [depth.places for depth in pair.depths] == [
        ("h.0", "x.0"), ("h.0", "x.1"), ("h.1", "x.2"), ("ln_f", "x.3"), ("ln_f", "x.4")
    ]  # fmt: skip
    assert pair.depths[4].median.ratio() == pytest.approx(6 / 300)


def test_two_models_of_which_one_has_no_stack_are_shown_one_after_the_other() -> None:
    first = statistics()
    second = replace(first, norms=first.norms[5:])
    shown = text_of_statistics([first, second], Format.TABLE, View.SUMMARY, TERMINAL)
    assert shown == "\n".join(render_statistics(found, TERMINAL) for found in (first, second))


# Pictures.

DOLLARS = ("$x_1$", "_the", "\u732b")


def test_a_picture_names_the_model_and_the_tokens_that_stand_out() -> None:
    found = replace(statistics(DOLLARS), target="./very/long$/" + "path/" * 30)
    drawn = plot_statistics([found], "svg").decode()
    assert drawn == plot_statistics([found], "svg").decode()
    words = re.findall(r"<text[^>]*>([^<]*)</text>", drawn)
    text = "".join(words)
    assert "GPT2Model" in text
    assert text.count("path/") == 30
    for word in ("variance before each norm", "0 &quot;$x_1$&quot;", "block of h", "median token"):
        assert word.replace("&quot;", '"') in text.replace("&quot;", '"')
    assert "the median token's variance grows 10,000 times" in text
    # Only what stands out is named.
    assert "_the" not in text
    assert {"0", "1", "end"} <= set(words)


def test_pictures_are_what_their_names_say() -> None:
    found = statistics(DOLLARS)
    assert plot_statistics([found, small()], "png").startswith(b"\x89PNG")
    page = plot_statistics([found], "html").decode()
    assert page.startswith("<!doctype html>")
    assert page.count("<svg") == 1
    # Nothing is fetched.
    assert not re.search(r"<(script|img|link|iframe)|@import|src=", page)


def test_a_picture_of_a_summarized_run_has_its_median_and_largest_tokens() -> None:
    found = statistics()
    kept = KeptEntries(places=(5, 9, 11), tokens=found.tokens)
    norms = tuple(replace(item, kept=kept) for item in found.norms[:5])
    left_out = LeftOut(over=10, quantile_error=0.0027)
    drawn = plot_statistics([replace(found, norms=norms, tokens=(), left_out=left_out)], "svg")
    assert b"largest token" in drawn
    assert b"other tokens" not in drawn


def test_where_no_norm_has_tokens_the_picture_says_so() -> None:
    found = statistics()
    drawn = plot_statistics([replace(found, norms=found.norms[5:])], "svg")
    assert b"no norm has one row a token" in drawn
