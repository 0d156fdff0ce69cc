"""What libraries and the user's own code print while a target is answered -> stderr, or nothing."""

import contextlib
import io
import logging
import os
import sys
import warnings
from collections.abc import Iterator

from normscope.cli.inert_stream import InertStream, logs_through

_WITHOUT_BARS = {
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "TQDM_DISABLE": "1",
}
"""Bars steer the terminal, and nothing that comes from others may."""
_QUIET_ENVIRONMENT = {
    **_WITHOUT_BARS,
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_HUB_VERBOSITY": "error",
    "TRANSFORMERS_NO_ADVISORY_WARNINGS": "1",
    "TRANSFORMERS_VERBOSITY": "error",
}
"""Read once when the libraries are imported; what the user has set stays."""


def set_quiet_environment(*, verbose: bool = False) -> None:
    """Switch off what libraries write by themselves, also in processes started later.

    With `verbose` that is their progress bars alone.
    """
    for name, value in (_WITHOUT_BARS if verbose else _QUIET_ENVIRONMENT).items():
        os.environ.setdefault(name, value)


@contextlib.contextmanager
def kept_off_stdout(*, quiet: bool, verbose: bool) -> Iterator[None]:
    """Send what others print to stderr, escaped, while the block runs, or with `quiet` nowhere.

    Without `verbose`, their warnings and log lines are off as well.
    """
    set_quiet_environment(verbose=verbose)
    place = io.StringIO() if quiet else InertStream(sys.stderr)
    with contextlib.ExitStack() as stack:
        stack.enter_context(logs_through(place, sys.stderr))
        stack.enter_context(contextlib.redirect_stderr(place))
        stack.enter_context(contextlib.redirect_stdout(place))
        stack.callback(place.flush)
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
    before = log.level
    log.addHandler(handler)
    log.setLevel(logging.DEBUG)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(before)
