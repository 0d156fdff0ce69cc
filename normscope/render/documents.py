"""Answers -> the JSON documents of the contract: one object a target, keys sorted, no times."""

import json
import math
from collections.abc import Mapping

from normscope.graph import Assumption
from normscope.inspection import (
    Answer,
    BlockReport,
    BranchReport,
    Inspection,
    NormReport,
    Site,
    StackReport,
    Uninspectable,
)

Json = Mapping[str, "Json"] | list["Json"] | str | int | float | bool | None

INSPECTION_SCHEMA = "normscope.inspection/1"
FAILURE_SCHEMA = "normscope.failure/1"


def render_json(answer: Answer) -> str:
    """Return the answer as one indented document."""
    return f"{_dumped(document_of(answer), indent=2)}\n"


def render_json_line(answer: Answer) -> str:
    """Return the answer as one line."""
    return f"{_dumped(document_of(answer), indent=None)}\n"


def document_of(answer: Answer) -> Json:
    """Return the answer as plain values."""
    return _failure(answer) if isinstance(answer, Uninspectable) else _inspection(answer)


def _dumped(document: Json, *, indent: int | None) -> str:
    """Escape everything beyond ASCII: valid for any text, and no terminal is steered by it."""
    return json.dumps(document, sort_keys=True, ensure_ascii=True, allow_nan=False, indent=indent)


def number(value: float | None) -> Json:
    """Return a number that JSON can hold: NaN and infinities as strings."""
    if value is None or math.isfinite(value):
        return value
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def _failure(failure: Uninspectable) -> Json:
    return {
        "schema": FAILURE_SCHEMA,
        "target": failure.target,
        "kind": failure.kind.value,
        "message": failure.message,
        "hint": failure.hint,
    }


def _inspection(inspection: Inspection) -> Json:
    model = inspection.model
    return {
        "schema": INSPECTION_SCHEMA,
        "target": inspection.target,
        "versions": dict(inspection.versions),
        "model": {
            "class": model.class_name,
            "model_type": model.model_type,
            "revision": model.revision,
            "parameters": model.parameters,
            "dtype": model.dtype,
        },
        "weights": inspection.weights,
        "placement": inspection.placement.value,
        "stacks": [_stack(stack) for stack in inspection.stacks],
        "blocks": [_block(block) for block in inspection.blocks],
        "norms": [_norm(norm) for norm in inspection.norms],
        "towers": list(inspection.towers),
        "assumptions": [_assumption(assumption) for assumption in inspection.assumptions],
        "warnings": list(inspection.warnings),
    }


def _stack(stack: StackReport) -> Json:
    return {
        "path": stack.path,
        "blocks": stack.blocks,
        "placement": stack.placement.value,
        "variants": [
            {"indices": list(variant.indices), "placement": variant.placement.value}
            for variant in stack.variants
        ],
    }


def _block(block: BlockReport) -> Json:
    return {
        "path": block.path,
        "stack": block.stack,
        "index": block.index,
        "calls": block.calls,
        "placement": block.placement.value,
        "branches": [_branch(branch) for branch in block.branches],
    }


def _branch(branch: BranchReport) -> Json:
    document: dict[str, Json] = {
        "kind": branch.kind.value,
        "placement": branch.placement.value,
        "sites": [site.value for site in branch.sites],
        "formula": branch.formula,
        "parallel": branch.parallel,
        "shared_norm": branch.shared_norm,
        "add": branch.add,
        "norms": {site.value: list(branch.norms.get(site, ())) for site in Site},
    }
    if branch.reason is not None:
        document["reason"] = branch.reason
    return document


def _norm(norm: NormReport) -> Json:
    return {
        "name": norm.name,
        "module": norm.module,
        "call": norm.call,
        "calls": norm.calls,
        "role": norm.role.value,
        "block": norm.block,
        "kind": norm.kind,
        "axes": list(norm.axes),
        "shape": list(norm.shape),
        "groups": norm.groups,
        "eps": number(norm.eps),
        "eps_position": norm.eps_position,
        "gain": norm.gain,
        "bias": norm.bias,
        "weight": norm.weight,
        "bias_name": norm.bias_name,
        "statistics_dtype": norm.statistics_dtype,
        "gain_dtype": norm.gain_dtype,
        "readers": list(norm.readers),
        "foldable": norm.foldable,
        "foldable_reason": norm.foldable_reason,
    }


def _assumption(assumption: Assumption) -> Json:
    return {
        "question": assumption.question,
        "where": assumption.where,
        "answer": assumption.answer,
    }
