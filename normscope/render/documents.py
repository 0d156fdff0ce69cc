"""Answers -> the JSON documents of the contract: one object a target, keys sorted, no times."""

from normscope.graph import Assumption
from normscope.inspection import (
    Answer,
    BlockReport,
    BranchReport,
    Inspection,
    NormReport,
    NotChecked,
    Site,
    StackReport,
    Uninspectable,
    Verification,
    VerifiedBranch,
    VerifiedNorm,
)
from normscope.render.plain import Json, dumped, number
from normscope.render.stored_document import adapter_document, stored_document

INSPECTION_SCHEMA = "normscope.inspection/1"
FAILURE_SCHEMA = "normscope.failure/1"


def render_json(answer: Answer) -> str:
    """Return the answer as one indented document."""
    return f"{dumped(document_of(answer), indent=2)}\n"


def render_json_line(answer: Answer) -> str:
    """Return the answer as one line."""
    return f"{dumped(document_of(answer), indent=None)}\n"


def document_of(answer: Answer) -> Json:
    """Return the answer as plain values."""
    return _failure(answer) if isinstance(answer, Uninspectable) else _inspection(answer)


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
    document: dict[str, Json] = {
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
    if inspection.stored is not None:
        document["stored"] = stored_document(inspection.stored)
    if inspection.adapter is not None:
        document["adapter"] = adapter_document(inspection.adapter)
    if inspection.verification is not None:
        document["verification"] = _verification(inspection.verification)
    return document


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
        "cast": norm.cast,
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


def _verification(found: Verification) -> Json:
    return {
        "agrees": found.agrees,
        "copy": found.copy,
        "branches": [_verified_branch(item) for item in found.branches],
        "norms": [_verified_norm(item) for item in found.norms],
        "branches_not_checked": [_not_checked(item) for item in found.branches_not_checked],
        "norms_not_checked": [_not_checked(item) for item in found.norms_not_checked],
    }


def _verified_branch(item: VerifiedBranch) -> Json:
    return {
        "block": item.block,
        "branch": item.branch,
        "kind": item.kind.value,
        "reported": item.reported.value,
        "observed": item.observed.value,
        "sites": [site.value for site in item.sites],
        "agrees": item.agrees,
        "seen_in": item.seen_in,
        "consequences": [
            {
                "intervention": one.intervention,
                "predicted": one.predicted,
                "observed": one.observed,
            }
            for one in item.consequences
        ],
    }


def _verified_norm(item: VerifiedNorm) -> Json:
    return {
        "name": item.name,
        "module": item.module,
        "agrees": item.agrees,
        "checks": [
            {
                "fact": check.fact,
                "reported": check.reported,
                "observed": check.observed,
                "agrees": check.agrees,
            }
            for check in item.checks
        ],
    }


def _not_checked(item: NotChecked) -> Json:
    return {"what": item.what, "reason": item.reason}
