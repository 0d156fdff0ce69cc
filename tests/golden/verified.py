"""Hand-made verifications: all agrees, some does not, nothing runs."""

from dataclasses import replace

from golden.inspections import bert, llama
from normscope.inspection import (
    Consequence,
    Inspection,
    NormCheck,
    NotChecked,
    Placement,
    Verification,
    VerifiedBranch,
    VerifiedNorm,
)

SHIFT = ("x + c for x", "those inputs change", "those inputs change")
PRE = (
    ("3x for x", "the branch's inputs stay", "3 of 3 inputs of its products stay"),
    ("3y for its y", "its output grows", "its output stays"),
    ("0 for the branch", "the sum is the skip", "the sum is the skip"),
)


def agreeing() -> Inspection:
    """Everything is checked and agrees."""
    report = llama(depth=2)
    return replace(report, verification=found(report))


def contradicted() -> Inspection:
    """Two branches and two norms disagree, others could not be checked."""
    report = bert()
    whole = found(report)
    wrong = [
        replace(one, observed=Placement.RES_POST, agrees=False, consequences=rows(*PRE))
        if one.block in {"encoder.layer.3", "encoder.layer.4"} and one.branch == 1
        else one
        for one in whole.branches
    ]
    eps = NormCheck(fact="eps", reported="1e-12", observed="1e-05", agrees=False)
    norms = [replace(one, checks=(*one.checks, eps)) for one in whole.norms[:2]]
    verification = replace(
        whole,
        branches=tuple(wrong[:-1]),
        norms=(*norms, *whole.norms[2:-5]),
        branches_not_checked=(
            NotChecked(what="encoder.layer.11, branch 1 (mlp)", reason="no skip goes around it"),
        ),
        norms_not_checked=tuple(
            NotChecked(what=one.name, reason="it is no module of its own")
            for one in whole.norms[-5:]
        ),
    )
    return replace(report, verification=verification)


def without_copy() -> Inspection:
    """No smaller model of the same code runs."""
    report = llama(depth=2)
    whole = found(report)
    missing = tuple(
        NotChecked(
            what=f"{one.block}, branch {one.branch} ({one.kind.value})",
            reason="no copy of it runs: the whole model: 6607M parameters are too many",
        )
        for one in whole.branches
    )
    return replace(
        report,
        verification=replace(whole, copy="none", branches=(), branches_not_checked=missing),
    )


def found(report: Inspection) -> Verification:
    """Return a verification that agrees with every verdict of `report`."""
    return Verification(
        copy="3 of 12 blocks, widths over 16, small images, 1.6M parameters",
        branches=tuple(
            VerifiedBranch(
                block=block.path,
                branch=place,
                kind=branch.kind,
                reported=branch.placement,
                observed=branch.placement,
                sites=branch.sites,
                agrees=True,
                seen_in=block.path,
                consequences=rows(SHIFT),
            )
            for block in report.blocks
            for place, branch in enumerate(block.branches)
        ),
        norms=tuple(
            VerifiedNorm(
                name=norm.name,
                module=norm.module,
                checks=(
                    NormCheck(fact="kind", reported=norm.kind, observed=norm.kind, agrees=True),
                ),
            )
            for norm in report.norms
        ),
        branches_not_checked=(),
        norms_not_checked=(),
    )


def rows(*texts: tuple[str, str, str]) -> tuple[Consequence, ...]:
    return tuple(
        Consequence(intervention=what, predicted=predicted, observed=observed)
        for what, predicted, observed in texts
    )
