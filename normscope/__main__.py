"""`python -m normscope`: like the installed command, which imports nothing from where it is called.

Python puts the current folder first. A stranger's checkpoint may be there, with a folder `torch`.
"""

import os
import sys

from normscope.entry import main


def _leave_current_folder_out() -> None:
    """Drop the entry, unless this package itself was found by it: a source tree that is run."""
    here = os.path.realpath(os.getcwd())  # noqa: PTH109  # pathlib is not loaded yet
    package = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))  # noqa: PTH120
    if not sys.flags.safe_path and sys.path[0] in {"", os.getcwd()} and package != here:  # noqa: PTH109
        del sys.path[0]


_leave_current_folder_out()

if __name__ == "__main__":
    main()
