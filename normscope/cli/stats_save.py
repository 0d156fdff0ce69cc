"""Statistics -> a file that holds every row, written whole or not at all."""

from pathlib import Path

from normscope.cli.output import check_destination, replace_file
from normscope.errors import UsageError
from normscope.render.statistics_rows import render_statistics_csv, render_statistics_rows
from normscope.render.visible import visible
from normscope.statistics import Statistics

_SUFFIXES = (".safetensors", ".csv", ".jsonl")


def check_save(path: Path | None, *, targets: int) -> None:
    """Raise `UsageError` where the file cannot be written, before any work is done."""
    if path is None:
        return
    if path.suffix not in _SUFFIXES:
        raise UsageError(
            f"--save cannot write {visible(path.name)}: the name says no format",
            f"end it in {', '.join(_SUFFIXES[:-1])} or {_SUFFIXES[-1]}",
        )
    if targets != 1:
        raise UsageError("--save takes one target", "measure them one by one")
    check_destination(path)


def save_statistics(path: Path, statistics: Statistics) -> None:
    """Put the file in place; raises `UsageError` where that cannot be done."""
    content = _content(path.suffix, statistics)
    try:
        replace_file(path, content)
    except OSError as error:
        raise UsageError(f"cannot write {visible(str(path))}: {error.strerror}") from error


def _content(suffix: str, statistics: Statistics) -> bytes:
    if suffix == ".csv":
        return render_statistics_csv(statistics).encode()
    if suffix == ".jsonl":
        return render_statistics_rows(statistics).encode()
    from normscope.activations.archive import archive_statistics

    return archive_statistics(statistics)
