"""Statistics -> the default view: what stands out, how the stream grows, each norm in two lines."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from rich.cells import cell_len
from rich.text import Text

from normscope.render.footnotes import marked
from normscope.render.grid import Cell, Entry, Row, laid_out, paragraph
from normscope.render.names import within_block
from normscope.render.page import Page, to_text
from normscope.render.statistics_float16 import float16_sentence
from normscope.render.statistics_stream import (
    StreamGrowth,
    bars,
    growth_sentence,
    stream_growth,
)
from normscope.render.statistics_verified import verified_words
from normscope.render.statistics_words import (
    entry_labels,
    figure,
    heading_words,
    norm_title,
    rows_remark,
)
from normscope.render.styles import NOTE, PATH, QUIET, TITLE
from normscope.render.visible import visible
from normscope.render.words import role_word
from normscope.statistics import Moments, NormStatistics, Statistics

_INDENT = 2
_NUMBERS = ("median", "p99", "max")


def render_statistics(statistics: Statistics, page: Page) -> str:
    """Return findings, growth of the stream, and the variance before and after each norm."""
    sections = (
        heading_lines(statistics, page),
        _finding_lines(statistics, page),
        _verified_lines(statistics, page),
        _stream_lines(statistics, page),
        _norm_lines(statistics, page),
    )
    return to_text(spaced(sections), page)


def heading_lines(statistics: Statistics, page: Page) -> list[Text]:
    """Return the lines that name what was measured, and on what."""
    model, inputs = heading_words(statistics)
    title = Text(visible(statistics.model.class_name), style=TITLE)
    target = visible(statistics.target)
    pieces = [target, model] if target != statistics.model.class_name else [model]
    named = "   ".join(pieces)
    lines = [title.append(f"   {named}", style="not bold")]
    if page.width is not None and lines[0].cell_len > page.width:
        lines = [Text(visible(statistics.model.class_name), style=TITLE)]
        fits = _INDENT + cell_len(named) <= page.width
        for piece in [named] if fits else pieces:
            lines += paragraph(piece, width=page.width, indent=_INDENT)
    return [*lines, *paragraph(inputs, width=page.width, indent=_INDENT, style=QUIET)]


def spaced(sections: Sequence[Sequence[Text]]) -> Iterator[Text]:
    """Join the sections that hold anything, with a blank line between."""
    filled = [section for section in sections if section]
    for number, section in enumerate(filled):
        if number:
            yield Text("")
        yield from section


# Findings.


def _finding_lines(statistics: Statistics, page: Page) -> list[Text]:
    sentences = [f"{item.code}  {visible(item.message)}" for item in statistics.findings]
    return [
        line
        for sentence in sentences
        for line in paragraph(sentence, width=page.width, indent=_INDENT, hang=7, style=NOTE)
    ]


def _verified_lines(statistics: Statistics, page: Page) -> list[Text]:
    """Say how far the recomputed outputs are from the real ones."""
    sentences = verified_words(statistics)
    return [
        line
        for sentence in sentences
        for line in paragraph(sentence, width=page.width, indent=_INDENT)
    ]


# The stream.


def _stream_lines(statistics: Statistics, page: Page) -> list[Text]:
    growths = stream_growth(statistics)
    lines = [line for growth in growths for line in _growth_lines(growth, page)]
    if lines:
        heading = "variance of the stream over depth, on a log scale"
        lines = [*paragraph(heading, width=page.width, indent=_INDENT, style=PATH), *lines]
    return [*lines, *_float16_lines(statistics, page)]


def _float16_lines(statistics: Statistics, page: Page) -> list[Text]:
    sentence = float16_sentence(statistics)
    return paragraph(sentence, width=page.width, indent=_INDENT, hang=2) if sentence else []


def _growth_lines(growth: StreamGrowth, page: Page) -> list[Text]:
    low, high = _scale((*growth.usual, *growth.largest))
    lines = (("median token", growth.usual, ""), ("largest token", growth.largest, growth.most()))
    entries = [
        Entry(
            lead=(
                Cell(word, QUIET),
                Cell(figure(values[0])),
                Cell(bars(values, low=low, high=high, most=_MOST_BARS if page.width else None)),
                Cell(figure(values[-1])),
            ),
            details=((Cell(remark),),),
        )
        for word, values, remark in lines
    ]
    sentence = f"{visible(growth.stack)}: {growth_sentence(growth)}"
    return [
        *laid_out(entries, width=page.width, indent=2 * _INDENT),
        *paragraph(sentence, width=page.width, indent=2 * _INDENT, hang=2),
    ]


_MOST_BARS = 40
"""On a terminal; deeper stacks have several blocks a bar."""


def _scale(values: Sequence[float]) -> tuple[float, float]:
    """A stream that hardly changes is drawn flat: at least two decades fill the height."""
    positive = [value for value in values if 0 < value < float("inf")]
    low, high = min(positive, default=1.0), max(positive, default=1.0)
    return low, max(high, low * 100)


# The norms.


def _norm_lines(statistics: Statistics, page: Page) -> list[Text]:
    notes = _notes(statistics)
    entries = list(_entries(statistics, notes))
    titles = ("", *(name.rjust(_NUMBER_WIDTH) for name in _NUMBERS), "at")
    header = Entry(
        lead=(Cell("variance", PATH),), details=(tuple(Cell(text, QUIET) for text in titles),)
    )
    lines = laid_out(entries, width=page.width, indent=_INDENT, header=header)
    for number, note in enumerate(notes, start=1):
        lines += paragraph(f"({number}) {note}", width=page.width, indent=_INDENT, hang=4)
    return lines


_NUMBER_WIDTH = 7
"""Of nearly every figure; a longer one moves its line."""


def _entries(statistics: Statistics, notes: Sequence[str]) -> Iterator[Entry]:
    for block, norms in groupby(statistics.norms, key=lambda norm: norm.block):
        before: tuple[Text, ...] = ()
        if block is not None:
            before = (Text("  ").append(visible(block), style=PATH),)
        for norm in norms:
            name = _name(norm, block, notes)
            yield Entry(lead=(name,), details=tuple(_rows(statistics, norm)), before=before)
            before = ()


def _name(norm: NormStatistics, block: str | None, notes: Sequence[str]) -> Cell:
    inner = within_block(norm.name, block) if block is not None else visible(norm.name)
    call = f" (call {norm.call})" if norm.call else ""
    remark = rows_remark(norm)
    footnote = notes.index(remark) + 1 if remark in notes else None
    return Cell(marked(("  " if block is not None else "") + inner + call, footnote))


def _notes(statistics: Statistics) -> tuple[str, ...]:
    """Return each remark on what entries are, or why there are none, once."""
    remarks = (rows_remark(norm) for norm in statistics.norms)
    return tuple(dict.fromkeys(remark for remark in remarks if remark))


def _rows(statistics: Statistics, norm: NormStatistics) -> Iterator[Row]:
    labels = entry_labels(statistics, norm)
    if norm.before is not None:
        yield _point("before", norm.before, labels)
    if norm.after is not None:
        yield _point("after", norm.after, labels)


def _point(word: str, moments: Moments, labels: Sequence[str]) -> Row:
    summary = moments.summary()
    numbers = (summary.median, summary.p99, summary.maximum)
    place = labels[summary.at_token] if summary.at_token is not None else ""
    return (
        Cell(word, QUIET),
        *(Cell(figure(number).rjust(_NUMBER_WIDTH)) for number in numbers),
        Cell(place),
    )


def norm_heading(norm: NormStatistics) -> str:
    """Return `h.0.ln_1   LayerNorm   input`, with what its entries are where they are no tokens."""
    remark = rows_remark(norm)
    pieces = (norm_title(norm), visible(norm.kind), role_word(norm.role), remark)
    return "   ".join(piece for piece in pieces if piece)
