"""Statistics -> the JSON document of the contract: keys sorted, nine digits, no times."""

import math
from collections.abc import Sequence

from normscope.half_precision import float16_fit
from normscope.inspection import Uninspectable
from normscope.render.documents import render_json, render_json_line
from normscope.render.plain import Json, dumped, number
from normscope.statistics import (
    KeptEntries,
    Moments,
    MomentsSummary,
    NormStatistics,
    Quantity,
    Statistics,
    StatisticsFinding,
    Token,
)

STATISTICS_SCHEMA = "normscope.statistics/1"

StatisticsAnswer = Statistics | Uninspectable


def render_statistics_json(answer: StatisticsAnswer) -> str:
    """Return the answer as one indented document."""
    if isinstance(answer, Uninspectable):
        return render_json(answer)
    return f"{dumped(statistics_document(answer), indent=2)}\n"


def render_statistics_json_line(answer: StatisticsAnswer) -> str:
    """Return the answer as one line."""
    if isinstance(answer, Uninspectable):
        return render_json_line(answer)
    return f"{dumped(statistics_document(answer), indent=None)}\n"


def statistics_document(statistics: Statistics) -> Json:
    """Return the statistics as plain values."""
    model, facts = statistics.model, statistics.input
    document: dict[str, Json] = {
        "schema": STATISTICS_SCHEMA,
        "target": statistics.target,
        "versions": dict(statistics.versions),
        "model": {
            "class": model.class_name,
            "model_type": model.model_type,
            "revision": model.revision,
            "parameters": model.parameters,
            "dtype": model.dtype,
        },
        "dtype": statistics.dtype,
        "device": statistics.device,
        "input": {
            "sequences": facts.sequences,
            "tokens": facts.tokens,
            "padding": facts.padding,
            "special": facts.special,
        },
        "tokens": [token_document(token) for token in statistics.tokens],
        "norms": [_norm(norm, verified=statistics.verified) for norm in statistics.norms],
        "findings": [_finding(finding) for finding in statistics.findings],
        "float16": _float16(statistics),
    }
    if statistics.left_out is not None:
        document["left_out"] = {
            "lists_over_rows": statistics.left_out.over,
            "quantile_error": nine_digits(statistics.left_out.quantile_error),
        }
    return document


def token_document(token: Token) -> dict[str, Json]:
    """Return one token; `stream` only where a model has tokens on both sides."""
    document: dict[str, Json] = {
        "sequence": token.sequence,
        "position": token.position,
        "id": token.id,
        "text": token.text,
        "special": token.special,
    }
    if token.stream:
        document["stream"] = token.stream
    return document


def _norm(norm: NormStatistics, *, verified: bool) -> Json:
    document: dict[str, Json] = {
        "name": norm.name,
        "call": norm.call,
        "role": norm.role.value,
        "kind": norm.kind,
        "rows_per_token": norm.rows_per_token,
        "before": None if norm.kept is not None else _moments(norm.before),
        "after": None if norm.kept is not None else _moments(norm.after),
        "summary": {"before": _summary(norm, norm.before), "after": _summary(norm, norm.after)},
    }
    if norm.normalized is not None and norm.kept is None:
        document["normalized"] = {
            "mean": _numbers(norm.normalized.mean),
            "variance": _numbers(norm.normalized.variance),
        }
    if verified:
        document["error"] = None if norm.error is None else nine_digits(norm.error)
    optional = (("stream", norm.stream), ("rows", norm.rows), ("problem", norm.problem))
    document |= {key: value for key, value in optional if value}
    return document


def _moments(moments: Moments | None) -> Json:
    if moments is None:
        return None
    return {
        "mean": _numbers(moments.mean),
        "variance": _numbers(moments.variance),
        "peak": _numbers(moments.peak),
        "peak_channel": list(moments.peak_channel),
    }


def _summary(norm: NormStatistics, moments: Moments | None) -> Json:
    if moments is None:
        return None
    pooled = moments.pooled()
    return {
        **{
            quantity.value: _quantity(norm.kept, moments.summary(quantity)) for quantity in Quantity
        },
        "pooled": {"mean": nine_digits(pooled.mean), "variance": nine_digits(pooled.variance)},
    }


def _quantity(kept: KeptEntries | None, summary: MomentsSummary) -> Json:
    """`at_token` counts all tokens; where they are not listed, the token is shown beside it."""
    document: dict[str, Json] = {
        "median": nine_digits(summary.median),
        "p99": nine_digits(summary.p99),
        "max": nine_digits(summary.maximum),
        "at_token": summary.at_token,
    }
    if kept is not None and summary.at_token is not None:
        document["at_token"] = kept.places[summary.at_token]
        if kept.tokens:
            document["token"] = token_document(kept.tokens[summary.at_token])
    return document


def _float16(statistics: Statistics) -> Json:
    """Say whether the stream fits; null where its norms do not tell."""
    fit = float16_fit(statistics)
    if fit is None:
        return None
    largest, first = fit.largest, fit.first
    return {
        "fits": first is None,
        "largest": nine_digits(largest.value),
        "where": largest.norm.name,
        "call": largest.norm.call,
        "point": largest.point,
        "channel": largest.channel,
        "token": None if fit.token is None else token_document(fit.token),
        "first": None if first is None else first.norm.block or first.norm.name,
    }


def _numbers(values: Sequence[float]) -> list[Json]:
    return [nine_digits(value) for value in values]


def nine_digits(value: float) -> Json:
    """Return a number with the nine digits that tell every float32 apart."""
    return float(f"{value:.9g}") if math.isfinite(value) else number(value)


def _finding(finding: StatisticsFinding) -> Json:
    document: dict[str, Json] = {
        "code": finding.code,
        "severity": finding.severity,
        "where": finding.where,
        "message": finding.message,
    }
    if finding.token is not None:
        document["token"] = token_document(finding.token)
    optional = (("channel", finding.channel), ("first", finding.first), ("last", finding.last))
    return document | {key: value for key, value in optional if value is not None}
