"""Standard streams that the shell has closed (`2>&-`) -> the null device in their place."""

import os
import sys


def open_closed_streams() -> None:
    """Have something stand behind the numbers 0 to 2.

    The next file that is opened would take such a number, and what native code prints would be
    written into it. Standard output stays closed for Python: results need a place.
    """
    for name, flags in (("stdin", os.O_RDONLY), ("stdout", os.O_WRONLY), ("stderr", os.O_WRONLY)):
        if getattr(sys, name) is None:
            descriptor = os.open(os.devnull, flags)  # the lowest number that is free
            if name != "stdout":
                setattr(sys, name, os.fdopen(descriptor, "r" if name == "stdin" else "w"))
