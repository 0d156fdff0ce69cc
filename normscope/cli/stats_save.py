"""The rows of a run as they come -> a file, written whole or not at all."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Protocol

from normscope.cli.extras import need_extra
from normscope.cli.interrupts import Interrupts
from normscope.cli.output import check_destination
from normscope.errors import UsageError
from normscope.files import PendingFile
from normscope.render.figures import one_of
from normscope.render.visible import visible

if TYPE_CHECKING:
    from normscope.activations.chunks import Chunk

_SUFFIXES = (".safetensors", ".csv", ".jsonl", ".parquet")


_PICTURES = (".png", ".svg", ".html")


def check_files(save: Path | None, plot: Path | None, *, targets: int) -> None:
    """Raise `UsageError` where a file cannot be written, before any work is done.

    Raises `NormscopeError` where its format needs a package that is not there.
    """
    if save is not None:
        _check("--save", save, _SUFFIXES)
        if targets != 1:
            raise UsageError("--save takes one target", "measure them one by one")
        if save.suffix == ".parquet":
            need_extra("pyarrow", extra="parquet", what="a .parquet file")
    if plot is not None:
        _check("--plot", plot, _PICTURES)
        if targets > 2:
            raise UsageError("--plot takes one target or two", "measure them one by one")
        need_extra("matplotlib", extra="plot", what="--plot")


def _check(option: str, path: Path, suffixes: Sequence[str]) -> None:
    if path.suffix not in suffixes:
        raise UsageError(
            f"{option} cannot write {visible(path.name)}: the name says no format",
            f"end it in {one_of(suffixes)}",
        )
    check_destination(path)


class _Writer(Protocol):
    """Writes the rows of one run to a file."""

    def write(self, chunk: "Chunk") -> None: ...
    def finish(self) -> None: ...
    def close(self) -> None: ...


@dataclass(slots=True, kw_only=True)
class SavedRows:
    """Takes the rows of a run; an interrupt comes between two chunks, never inside one."""

    path: Path
    interrupts: Interrupts
    sequences: int = 0
    """How many are in the file, from the first on."""
    tokens: int = 0
    _pending: PendingFile = field(init=False)
    _writer: _Writer = field(init=False)

    def __post_init__(self) -> None:
        with _writing(self.path):
            self._pending = PendingFile(self.path)
            try:
                self._writer = _writer_for(self.path)(self._pending.file, self.path.parent)
            except BaseException:
                self._pending.discard()
                raise

    def write(self, chunk: "Chunk") -> None:
        """Take the next chunk; raises `UsageError` where the disk does not."""
        with self.interrupts.held(), _writing(self.path):
            self._writer.write(chunk)
            self.tokens += len(chunk.tokens)
            self.sequences = max([self.sequences, *(t.sequence + 1 for t in chunk.tokens)])

    def commit(self) -> None:
        """Put the file in place with what was written so far."""
        with self.interrupts.held(), _writing(self.path):
            self._writer.finish()
            self._pending.commit()

    def close(self) -> None:
        """Leave nothing behind but a file that was put in place."""
        with suppress(OSError):  # of a full disk; the write has told it
            self._writer.close()
        self._pending.discard()


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UsageError(f"cannot write {visible(str(path))}: {error.strerror}") from error


def _writer_for(path: Path) -> Callable[[BinaryIO, Path], _Writer]:
    """Return what makes the writer; the imports wait because they bring in NumPy and torch."""
    if path.suffix == ".safetensors":
        from normscope.activations.archive import ArchiveWriter

        return ArchiveWriter
    if path.suffix == ".parquet":
        from normscope.activations.parquet import ParquetWriter

        return lambda file, _folder: ParquetWriter(file)
    from normscope.render.statistics_rows import TextWriter

    as_csv = path.suffix == ".csv"
    return lambda file, _folder: TextWriter(file, as_csv=as_csv)
