"""Comparison -> one JSON object, or markdown for a pull request."""

from normscope.comparison import Compared, Comparison, Difference, NormPair
from normscope.render.comparison import (
    difference_rows,
    value_name,
    verdict_text,
    worst_values,
)
from normscope.render.markdown import code, escaped, joined, table
from normscope.render.plain import Json, dumped, number
from normscope.render.visible import visible
from normscope.weights.report import ValueDifference

COMPARISON_SCHEMA = "normscope.comparison/1"


def render_comparison_json(comparison: Comparison, *, indent: int | None = 2) -> str:
    """Return the comparison as one JSON object, indented unless `indent` is None."""
    return f"{dumped(_document(comparison), indent=indent)}\n"


def _document(comparison: Comparison) -> Json:
    values = comparison.values
    return {
        "schema": COMPARISON_SCHEMA,
        "left": _side(comparison.left),
        "right": _side(comparison.right),
        "equal": comparison.equal,
        "tolerance": comparison.tolerance,
        "differences": [_difference(found) for found in comparison.differences],
        "norms": [_pair(pair) for pair in comparison.pairs],
        "values": None if values is None else [_value(value) for value in values],
    }


def _side(side: Compared) -> Json:
    return {
        "target": side.target,
        "versions": dict(side.versions),
        "class": side.model.class_name,
        "model_type": side.model.model_type,
        "revision": side.model.revision,
        "parameters": side.model.parameters,
        "dtype": side.model.dtype,
    }


def _difference(found: Difference) -> Json:
    return {
        "where": found.where,
        "other": found.other,
        "stack": found.stack,
        "index": found.index,
        "fact": found.fact,
        "left": found.left,
        "right": found.right,
    }


def _pair(pair: NormPair) -> Json:
    return {
        "left": {"name": pair.left.name, "call": pair.left.call},
        "right": {"name": pair.right.name, "call": pair.right.call},
        "role": pair.left.role.value,
    }


def _value(value: ValueDifference) -> Json:
    return {
        "left": value.left,
        "right": value.right,
        "largest": number(value.largest),
        "relative": number(value.relative),
        "channel": value.channel,
        "both_nan": value.both_nan,
    }


def render_comparison_markdown(comparison: Comparison) -> str:
    """Return what differs as markdown."""
    sides = (comparison.left, comparison.right)
    heading = " and ".join(code(visible(side.target)) for side in sides)
    rows = [
        (
            code(row.where),
            row.blocks,
            escaped(row.fact),
            code(row.left),
            code(row.right),
        )
        for row in difference_rows(comparison.differences)
    ]
    values = [
        (code(value_name(value)), f"{value.relative:.3g}", f"{value.largest:.3g}")
        for value in worst_values(comparison)
    ]
    return joined(
        (
            f"### {heading}",
            escaped(verdict_text(comparison)),
            table(("where", "blocks", "fact", "A", "B"), rows) if rows else "",
            table(("parameter", "relative", "largest"), values) if values else "",
        )
    )
