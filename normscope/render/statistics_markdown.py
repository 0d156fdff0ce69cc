"""Statistics -> markdown for a pull request or a job summary."""

from collections.abc import Iterator

from normscope.render.markdown import code, escaped, joined
from normscope.render.statistics_float16 import float16_sentence
from normscope.render.statistics_stream import growth_sentence, stream_growth
from normscope.render.statistics_words import (
    entry_labels,
    figure,
    heading_words,
    norm_title,
    rows_remark,
)
from normscope.render.visible import visible
from normscope.statistics import NormStatistics, Statistics

_COLUMNS = ("norm", "median before", "max before", "at", "median after", "max after", "at", "")


def render_statistics_markdown(statistics: Statistics) -> str:
    """Return the default view as markdown: variances, one row a norm."""
    model, inputs = heading_words(statistics)
    growths = stream_growth(statistics)
    fit = float16_sentence(statistics)
    points = [
        *(f"{item.code}: {escaped(visible(item.message))}" for item in statistics.findings),
        *(f"{code(visible(item.stack))}: {growth_sentence(item)}" for item in growths),
        *([escaped(fit)] if fit else []),
    ]
    paragraphs = (
        f"### {escaped(visible(statistics.model.class_name))} · {code(visible(statistics.target))}",
        f"{escaped(model)}; {escaped(inputs)}.",
        "\n".join(f"- {point}" for point in points),
        "\n".join(_table(statistics)),
    )
    return joined(paragraphs)


def _table(statistics: Statistics) -> Iterator[str]:
    yield f"| {' | '.join(_COLUMNS)} |"
    yield f"|{'---|' * len(_COLUMNS)}"
    for norm in statistics.norms:
        cells = (code(norm_title(norm)), *_cells(statistics, norm), escaped(rows_remark(norm)))
        yield f"| {' | '.join(cells)} |"


def _cells(statistics: Statistics, norm: NormStatistics) -> Iterator[str]:
    labels = entry_labels(statistics, norm)
    for moments in (norm.before, norm.after):
        if moments is None:
            yield from ("", "", "")
            continue
        summary = moments.summary()
        yield figure(summary.median)
        yield figure(summary.maximum)
        yield "" if summary.at_token is None else escaped(labels[summary.at_token])
