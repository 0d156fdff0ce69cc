"""Statistics -> one line a row, as CSV or JSON lines: every row of every norm."""

import csv
import io
import json
from collections.abc import Iterator

from normscope.render.documents import Json
from normscope.render.statistics_documents import nine_digits
from normscope.statistics import Moments, NormStatistics, Statistics, Token

_QUANTITIES = ("mean", "variance", "peak", "peak_channel")
COLUMNS = (
    "norm",
    "call",
    "role",
    "kind",
    "stream",
    "sequence",
    "position",
    "id",
    "text",
    "special",
    "row",
    *(f"{point}_{quantity}" for point in ("before", "after") for quantity in _QUANTITIES),
)


def render_statistics_csv(statistics: Statistics) -> str:
    """Return a header and one line a row; what is not known is left empty."""
    target = io.StringIO()
    writer = csv.DictWriter(target, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(_rows(statistics))
    return target.getvalue()


def render_statistics_rows(statistics: Statistics) -> str:
    """Return one JSON object a row."""
    lines = (json.dumps(row, sort_keys=True, allow_nan=False) for row in _rows(statistics))
    return "".join(f"{line}\n" for line in lines)


def _rows(statistics: Statistics) -> Iterator[dict[str, Json]]:
    for norm in statistics.norms:
        before, after = norm.every_before or norm.before, norm.every_after or norm.after
        if before is None or after is None:
            continue
        tokens = statistics.tokens_of(norm)
        for index in range(len(before.mean)):
            token, row = _place(norm, tokens, index)
            yield {
                "norm": norm.name,
                "call": norm.call,
                "role": norm.role.value,
                "kind": norm.kind,
                "stream": norm.stream or None,
                **_token(token),
                "row": row,
                **_point("before", before, index),
                **_point("after", after, index),
            }


def _place(norm: NormStatistics, tokens: tuple[Token, ...], index: int) -> tuple[Token | None, int]:
    """Return the token that a row belongs to, and which of its rows it is."""
    if norm.rows_per_token is None:
        return None, index
    return tokens[index // norm.rows_per_token], index % norm.rows_per_token


def _token(token: Token | None) -> dict[str, Json]:
    if token is None:
        return dict.fromkeys(("sequence", "position", "id", "text", "special"))
    return {
        "sequence": token.sequence,
        "position": token.position,
        "id": token.id,
        "text": token.text,
        "special": token.special,
    }


def _point(name: str, moments: Moments, index: int) -> dict[str, Json]:
    return {
        f"{name}_mean": nine_digits(moments.mean[index]),
        f"{name}_variance": nine_digits(moments.variance[index]),
        f"{name}_peak": nine_digits(moments.peak[index]),
        f"{name}_peak_channel": moments.peak_channel[index],
    }
