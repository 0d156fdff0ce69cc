"""Statistics -> the bytes of a safetensors file: every row, as tensors."""

import json
from collections.abc import Iterator, Sequence

import torch
from safetensors.torch import save

from normscope.statistics import Moments, NormStatistics, Statistics

_QUANTITIES = ("mean", "variance", "peak")
_NO_ID = -1


def archive_statistics(statistics: Statistics) -> bytes:
    """Return a safetensors file.

    `before.mean`, `before.variance`, `before.peak`, `before.peak_channel` and `after.…` are
    [norms, tokens] for the norms with one row a token; any other norm has
    `rows/<name>#<call>/before.mean` …, [tokens, rows] or [rows]. `token_ids` is [tokens], -1 where
    a token has no id. A model with tokens on both sides has two such sets, under `encoder/` and
    `decoder/`. The metadata `normscope` is JSON: norms, tokens, versions.
    """
    tensors = dict(_tensors(statistics))
    return bytes(save(tensors, metadata={"normscope": json.dumps(_metadata(statistics))}))


def _tensors(statistics: Statistics) -> Iterator[tuple[str, torch.Tensor]]:
    for stream in _streams(statistics):
        prefix = f"{stream}/" if stream else ""
        ids = [token.id for token in statistics.tokens if token.stream == stream]
        yield (
            f"{prefix}token_ids",
            torch.tensor([_NO_ID if item is None else item for item in ids], dtype=torch.int64),
        )
        yield from _stacked(prefix, _in_the_table(statistics, stream))
    for norm in statistics.norms:
        if norm.rows_per_token != 1:
            yield from _single(norm)


def _streams(statistics: Statistics) -> list[str]:
    return list(dict.fromkeys(token.stream for token in statistics.tokens)) or [""]


def _in_the_table(statistics: Statistics, stream: str) -> list[NormStatistics]:
    return [
        norm
        for norm in statistics.norms
        if norm.rows_per_token == 1 and norm.before is not None and norm.stream == stream
    ]


def _stacked(prefix: str, norms: Sequence[NormStatistics]) -> Iterator[tuple[str, torch.Tensor]]:
    for point in ("before", "after"):
        moments = [_point(norm, point) for norm in norms]
        kept = [item for item in moments if item is not None]
        if not kept:
            continue
        for quantity in _QUANTITIES:
            rows = [getattr(item, quantity) for item in kept]
            yield f"{prefix}{point}.{quantity}", torch.tensor(rows, dtype=torch.float32)
        channels = [item.peak_channel for item in kept]
        yield f"{prefix}{point}.peak_channel", torch.tensor(channels, dtype=torch.int64)


def _point(norm: NormStatistics, point: str) -> Moments | None:
    return norm.before if point == "before" else norm.after


def _single(norm: NormStatistics) -> Iterator[tuple[str, torch.Tensor]]:
    pairs = (
        ("before", norm.every_before or norm.before),
        ("after", norm.every_after or norm.after),
    )
    shape = (-1, norm.rows_per_token) if norm.rows_per_token else (-1,)
    for point, moments in pairs:
        if moments is None:
            continue
        name = f"rows/{norm.name}#{norm.call}/{point}"
        for quantity in _QUANTITIES:
            values = torch.tensor(getattr(moments, quantity), dtype=torch.float32)
            yield f"{name}.{quantity}", values.reshape(shape)
        channels = torch.tensor(moments.peak_channel, dtype=torch.int64)
        yield f"{name}.peak_channel", channels.reshape(shape)


def _metadata(statistics: Statistics) -> dict[str, object]:
    return {
        "schema": "normscope.statistics/1",
        "target": statistics.target,
        "versions": dict(statistics.versions),
        "dtype": statistics.dtype,
        "norms": [
            {
                "name": norm.name,
                "call": norm.call,
                "role": norm.role.value,
                "kind": norm.kind,
                "stream": norm.stream,
                "rows_per_token": norm.rows_per_token,
                "rows": norm.rows,
                "problem": norm.problem,
                "in_table": norm.rows_per_token == 1 and norm.before is not None,
            }
            for norm in statistics.norms
        ],
        "tokens": [
            {
                "sequence": token.sequence,
                "position": token.position,
                "id": token.id,
                "text": token.text,
                "special": token.special,
                "stream": token.stream,
            }
            for token in statistics.tokens
        ],
    }
