"""Statistics -> the JSON document of the contract: keys sorted, nine digits, no times."""

import json
import math
from collections.abc import Sequence

from normscope.inspection import Uninspectable
from normscope.render.documents import Json, number, render_json, render_json_line
from normscope.statistics import (
    Moments,
    MomentsSummary,
    NormStatistics,
    Statistics,
    StatisticsFinding,
    Token,
    summarize,
)

STATISTICS_SCHEMA = "normscope.statistics/1"

StatisticsAnswer = Statistics | Uninspectable


def render_statistics_json(answer: StatisticsAnswer) -> str:
    """Return the answer as one indented document."""
    if isinstance(answer, Uninspectable):
        return render_json(answer)
    return f"{_dumped(statistics_document(answer), indent=2)}\n"


def render_statistics_json_line(answer: StatisticsAnswer) -> str:
    """Return the answer as one line."""
    if isinstance(answer, Uninspectable):
        return render_json_line(answer)
    return f"{_dumped(statistics_document(answer), indent=None)}\n"


def _dumped(document: Json, *, indent: int | None) -> str:
    return json.dumps(document, sort_keys=True, ensure_ascii=True, allow_nan=False, indent=indent)


def statistics_document(statistics: Statistics) -> Json:
    """Return the statistics as plain values."""
    model, facts = statistics.model, statistics.input
    return {
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
        "norms": [_norm(norm) for norm in statistics.norms],
        "findings": [_finding(finding) for finding in statistics.findings],
    }


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


def _norm(norm: NormStatistics) -> Json:
    document: dict[str, Json] = {
        "name": norm.name,
        "call": norm.call,
        "role": norm.role.value,
        "kind": norm.kind,
        "rows_per_token": norm.rows_per_token,
        "before": _moments(norm.before),
        "after": _moments(norm.after),
        "summary": {"before": _summary(norm.before), "after": _summary(norm.after)},
    }
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


def _summary(moments: Moments | None) -> Json:
    if moments is None:
        return None
    quantities = (("mean", moments.mean), ("variance", moments.variance), ("peak", moments.peak))
    return {name: _quantity(summarize(values)) for name, values in quantities}


def _quantity(summary: MomentsSummary) -> Json:
    return {
        "median": nine_digits(summary.median),
        "p99": nine_digits(summary.p99),
        "max": nine_digits(summary.maximum),
        "at_token": summary.at_token,
    }


def _numbers(values: Sequence[float]) -> list[Json]:
    return [nine_digits(value) for value in values]


def nine_digits(value: float) -> Json:
    """Return a number with the nine digits that tell every float32 apart."""
    return float(f"{value:.9g}") if math.isfinite(value) else number(value)


def _finding(finding: StatisticsFinding) -> Json:
    return {
        "code": finding.code,
        "severity": finding.severity,
        "where": finding.where,
        "message": finding.message,
    }
