"""Answers of `stats` -> a picture in a file, written whole or not at all."""

from collections.abc import Sequence
from pathlib import Path

from normscope.cli.output import replace_file
from normscope.errors import UsageError
from normscope.render.statistics_documents import StatisticsAnswer
from normscope.render.visible import visible
from normscope.statistics import Statistics


def save_plot(path: Path, answers: Sequence[StatisticsAnswer]) -> None:
    """Draw what was measured, if anything was; raises `UsageError` where that cannot be written."""
    from normscope.render.statistics_plot import plot_statistics

    measured = [answer for answer in answers if isinstance(answer, Statistics)]
    if not measured:
        return
    try:
        replace_file(path, plot_statistics(measured, path.suffix.removeprefix(".")))
    except OSError as error:
        raise UsageError(f"cannot write {visible(str(path))}: {error.strerror}") from error
