"""Several answers -> one table that compares them."""

from collections.abc import Sequence

from normscope.inspection import Answer, Inspection, Placement, Role, Uninspectable
from normscope.render.figures import one_of
from normscope.render.grid import Cell, Entry, laid_out
from normscope.render.page import Page, to_text
from normscope.render.styles import FORMULA, QUIET, placement_style
from normscope.render.summary import Summary, summarize
from normscope.render.verified import agreement
from normscope.render.visible import visible
from normscope.render.words import SITE_ROLES

_COLUMNS = ("target", "placement", "formula", "norm", "eps", "gain", "final norm")


def render_overview(answers: Sequence[Answer], page: Page) -> str:
    """Return the comparison table, a row a target, in the order of the answers."""
    verified = any_verified(answers)
    rows = [overview_row(answer, verified=verified) for answer in answers]
    entries = [_entry(answer, row) for answer, row in zip(answers, rows, strict=True)]
    header = _row(*(Cell(name, QUIET) for name in overview_columns(verified=verified)))
    return to_text(laid_out(entries, width=page.width, header=header), page)


def any_verified(answers: Sequence[Answer]) -> bool:
    """Tell whether the table needs the column that says what is verified."""
    return any(
        isinstance(answer, Inspection) and answer.verification is not None for answer in answers
    )


def overview_columns(*, verified: bool) -> tuple[str, ...]:
    """Return the names of the columns."""
    return (*_COLUMNS, "verified") if verified else _COLUMNS


def overview_row(answer: Answer, *, verified: bool) -> tuple[str, ...]:
    """Return what the columns say of one target."""
    target = visible(answer.target)
    last = ("",) if verified else ()
    if isinstance(answer, Uninspectable):
        return (target, "not inspected", answer.kind.value, "", "", "", "", *last)
    summary = summarize(answer)
    if answer.verification is not None:
        last = (agreement(answer.verification),)
    return (target, summary.placement.value, _formula(summary), *_norms(answer), *last)


def _formula(summary: Summary) -> str:
    """Return the formula; of several, how many, or the usual one where all have one name."""
    formulas = list(dict.fromkeys(line.formula for line in summary.verdict))
    if len(formulas) < 2:
        return "".join(formulas)
    if summary.placement is Placement.MIXED:
        return f"{len(formulas)} formulas"
    return f"{formulas[0]}, {len(formulas) - 1} more"


def _norms(inspection: Inspection) -> tuple[str, str, str, str]:
    norms = [n for n in inspection.norms if n.calls and n.role in SITE_ROLES]
    usual = [n for n in norms if n.role is not Role.INSIDE_BRANCH] or norms
    final = any(n.role is Role.FINAL and n.calls for n in inspection.norms)
    return (
        one_of(dict.fromkeys(visible(n.kind) for n in usual)),
        one_of(dict.fromkeys("none" if n.eps is None else f"{n.eps:g}" for n in usual)),
        one_of(dict.fromkeys(visible(n.gain) for n in usual)),
        "yes" if final else "no",
    )


def _entry(answer: Answer, row: tuple[str, ...]) -> Entry:
    style = "red" if isinstance(answer, Uninspectable) else placement_style(answer.placement)
    target, placement, formula, *rest = row
    return _row(Cell(target), Cell(placement, style), Cell(formula, FORMULA), *map(Cell, rest))


def _row(lead: Cell, *details: Cell) -> Entry:
    return Entry(lead=(lead,), details=(details,))
