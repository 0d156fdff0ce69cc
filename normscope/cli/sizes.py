"""How much memory, as it is typed -> bytes."""

import re

from normscope.errors import UsageError

_UNITS = {
    "": 1,
    "B": 1,
    **{f"{letter}B": 1000**power for power, letter in enumerate("KMGT", start=1)},
    **{f"{letter}IB": 1024**power for power, letter in enumerate("KMGT", start=1)},
}


def read_size(text: str, option: str) -> int:
    """Return the bytes that `2GB`, `512MiB` or `1.5 GB` mean; raises `UsageError` otherwise."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", text)
    unit = _UNITS.get(found.group(2).upper()) if found else None
    if found is None or unit is None:
        raise UsageError(f"{option} {text} is no size", "write it like 2GB, 512MiB or 1.5GB")
    return int(float(found.group(1)) * unit)
