"""Plain values -> JSON text that is valid for any text and any number."""

import json
import math
from collections.abc import Mapping

from normscope.render.inert import inert_json

Json = Mapping[str, "Json"] | list["Json"] | str | int | float | bool | None


def dumped(document: Json, *, indent: int | None) -> str:
    """Escape everything beyond ASCII: valid for any text, and nothing is steered by it."""
    return inert_json(
        json.dumps(document, sort_keys=True, ensure_ascii=True, allow_nan=False, indent=indent)
    )


def number(value: float | None) -> Json:
    """Return a number that JSON can hold: NaN and infinities as strings."""
    if value is None or math.isfinite(value):
        return value
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"
