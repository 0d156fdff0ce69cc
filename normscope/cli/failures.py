"""The only formatter of errors, and the exit statuses."""

import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import IntEnum
from typing import TypeVar

import typer

from normscope.cli.interrupts import interruptible, stopped
from normscope.cli.libraries import kept_off_stdout
from normscope.cli.output import ReaderGoneError, say
from normscope.errors import FailureKind, NormscopeError, UsageError
from normscope.inspection import Uninspectable
from normscope.render.visible import visible

Answer = TypeVar("Answer")

REPORT_IT = "this is a bug in normscope: report it, with the traceback that --verbose shows"


class ExitStatus(IntEnum):
    """What the shell gets; scripts depend on the numbers."""

    DONE = 0
    FINDINGS = 1
    USAGE = 2
    UNANSWERED = 3
    """A target could not be answered; wins over `FINDINGS`."""
    INTERRUPTED = 130


def answered(
    target: str, ask: Callable[[], Answer], *, quiet: bool = False, verbose: bool = False
) -> Answer | Uninspectable:
    """Return what `ask` returns, or why there is no answer for `target`.

    What libraries print meanwhile stays off stdout. A `UsageError` passes: it is about what was
    typed. With `verbose` the traceback of a failure goes to stderr. A signal that a library has
    taken for an error, or has swallowed, ends the command all the same.
    """
    if stopped():
        raise KeyboardInterrupt
    try:
        with kept_off_stdout(quiet=quiet, verbose=verbose):
            return ask()
    except UsageError:
        raise
    except Exception as error:  # one bad target must not stop the others
        if stopped():
            raise KeyboardInterrupt from error
        if verbose:
            say(_traceback(error))
        return _failure(target, error)


def tell_failure(failure: Uninspectable) -> None:
    """Say on stderr why a target has no answer, and what to do next."""
    named = failure.message.startswith(failure.target)
    _tell(failure.message if named else f"{failure.target}: {failure.message}", failure.hint)


@contextmanager
def every_error_told() -> Iterator[None]:
    """Turn whatever ends a command, also a signal, into lines on stderr and an exit status."""
    try:
        with _interrupts_counted():
            yield
    except (typer.Exit, typer.Abort, typer.BadParameter):
        raise
    except UsageError as error:
        for mistake in (error, *error.others):
            _tell(mistake.message, mistake.hint)
        raise typer.Exit(ExitStatus.USAGE) from error
    except NormscopeError as error:
        _tell(error.message, error.hint)
        raise typer.Exit(ExitStatus.UNANSWERED) from error
    except ReaderGoneError as error:
        raise typer.Exit(ExitStatus.DONE) from error
    except KeyboardInterrupt as error:
        say("interrupted")
        raise typer.Exit(ExitStatus.INTERRUPTED) from error
    except Exception as error:
        say(_traceback(error))
        _tell(_summary(error), REPORT_IT)
        raise typer.Exit(ExitStatus.UNANSWERED) from error


@contextmanager
def _interrupts_counted() -> Iterator[None]:
    """Let signals end the block, also where an import of it has made another error of one."""
    with interruptible() as interrupts:
        try:
            yield
        except Exception as error:
            if interrupts.arrived_once and not isinstance(error, typer.Exit | typer.Abort):
                raise KeyboardInterrupt from error
            raise


def _tell(message: str, hint: str) -> None:
    say(f"error: {visible(message)}")
    if hint:
        say(f"hint: {visible(hint)}")


def _failure(target: str, error: Exception) -> Uninspectable:
    if isinstance(error, NormscopeError):
        return Uninspectable(target=target, kind=error.kind, message=error.message, hint=error.hint)
    if isinstance(error, MemoryError):
        kind = FailureKind.OUT_OF_MEMORY
        return Uninspectable(target=target, kind=kind, message="out of memory")
    kind = FailureKind.INTERNAL
    return Uninspectable(target=target, kind=kind, message=_summary(error), hint=REPORT_IT)


def _summary(error: Exception) -> str:
    lines = str(error).splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


def _traceback(error: Exception) -> str:
    lines = "".join(traceback.format_exception(error)).splitlines()
    return "\n".join(visible(line) for line in lines)
