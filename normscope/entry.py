"""The first lines of the command: an interrupt ends it without a traceback while it still loads.

Under `python -m` the current folder comes first here: nothing is imported that Python has not
loaded by itself, until that folder is gone.
"""

import os
import sys
from importlib import import_module

_INTERRUPTED = 130


def main() -> None:
    """Load and run the command line; the process ends with an exit status."""
    end_when_interrupted()
    from normscope.cli.app import main as run

    run()


def end_when_interrupted() -> None:
    """Have Ctrl-C and SIGTERM end the process at once, until a command takes them over."""
    # Built in: `signal` itself would load others first, where an interrupt is a traceback.
    signals = import_module("_signal")
    for number in (signals.SIGINT, signals.SIGTERM):
        if signals.getsignal(number) != signals.SIG_IGN:  # what `nohup` has us ignore stays so
            signals.signal(number, _end)


def _end(_number: int, _frame: object) -> None:
    files = sys.modules.get("normscope.files")
    if files is not None and hasattr(files, "discard_pending"):
        files.discard_pending()
    try:  # noqa: SIM105  # contextlib would have to be loaded
        os.write(2, b"interrupted\n")
    except OSError:
        pass
    os._exit(_INTERRUPTED)
