"""What libraries and the user's own code print while a target is answered -> stderr, or nothing."""

import contextlib
import io
import logging
import os
import sys
import warnings
from collections.abc import Iterator

from normscope.render.visible import visible

_QUIET_ENVIRONMENT = {
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_HUB_VERBOSITY": "error",
    "TQDM_DISABLE": "1",
    "TRANSFORMERS_NO_ADVISORY_WARNINGS": "1",
    "TRANSFORMERS_VERBOSITY": "error",
}
"""Read once when the libraries are imported; what the user has set stays."""


def set_quiet_environment() -> None:
    """Switch off what libraries write by themselves, also in processes started later."""
    for name, value in _QUIET_ENVIRONMENT.items():
        os.environ.setdefault(name, value)


@contextlib.contextmanager
def kept_off_stdout(*, quiet: bool, verbose: bool) -> Iterator[None]:
    """Send what others print to stderr while the block runs, or with `quiet` nowhere.

    Without `verbose`, their warnings, log lines and progress bars are off as well.
    """
    if not verbose:
        set_quiet_environment()
    with contextlib.ExitStack() as stack:
        if quiet:
            nowhere = io.StringIO()
            stack.enter_context(contextlib.redirect_stderr(nowhere))
            stack.enter_context(contextlib.redirect_stdout(nowhere))
        else:
            stack.enter_context(contextlib.redirect_stdout(sys.stderr))
        if verbose:
            stack.enter_context(_own_log_on_stderr())
        else:
            stack.enter_context(warnings.catch_warnings())
            warnings.simplefilter("ignore")
        yield


@contextlib.contextmanager
def _own_log_on_stderr() -> Iterator[None]:
    log = logging.getLogger("normscope")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_VisibleFormatter())
    before = log.level
    log.addHandler(handler)
    log.setLevel(logging.DEBUG)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(before)


class _VisibleFormatter(logging.Formatter):
    """Lets no word of a message or a traceback steer the terminal."""

    def format(self, record: logging.LogRecord) -> str:
        return "\n".join(visible(line) for line in super().format(record).splitlines())
