"""Two small trained checkpoints that differ only in where they normalise.

This module names and locates them; it imports neither torch nor transformers, so that asking for
a path costs nothing.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

DEMO_NAMES: Final = ("pre-norm", "post-norm")


def demo_path(name: str) -> Path:
    """Return the directory of the demo checkpoint ``name``, one of ``DEMO_NAMES``."""
    if name not in DEMO_NAMES:
        message = f"unknown demo checkpoint {name!r}; the known ones are: {', '.join(DEMO_NAMES)}"
        raise LookupError(message)
    return Path(__file__).parent / name
