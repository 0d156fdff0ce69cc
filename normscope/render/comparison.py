"""Comparison -> what differs between two models, equal differences of a stack's blocks as one."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.text import Text

from normscope.comparison import Compared, Comparison, Difference
from normscope.render.figures import counted, human_count, index_ranges
from normscope.render.grid import Cell, Entry, laid_out, paragraph
from normscope.render.names import within_block
from normscope.render.page import Page, to_text
from normscope.render.styles import PATH, QUIET, TITLE
from normscope.render.visible import visible
from normscope.statistics import greatest
from normscope.weights.report import ValueDifference

_INDENT = 2
_MOST_VALUES = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class DifferenceRow:
    """One difference, or equal ones in several blocks of a stack."""

    where: str
    blocks: str
    fact: str
    left: str
    right: str


def render_comparison(comparison: Comparison, page: Page) -> str:
    """Return both models, whether they are equal, and what differs."""
    lines = [
        *_side("A", comparison.left, page),
        *_side("B", comparison.right, page),
        Text(""),
        *paragraph(verdict_text(comparison), width=page.width, indent=_INDENT),
    ]
    rows = difference_rows(comparison.differences)
    if rows:
        lines += [Text(""), *_table(rows, page)]
    if comparison.unequal_values:
        lines += [Text(""), *_values(comparison, page)]
    return to_text(lines, page)


def _side(letter: str, side: Compared, page: Page) -> list[Text]:
    size = f"{human_count(side.model.parameters)} parameters, {visible(side.model.dtype)}"
    entry = Entry(
        lead=(Cell(letter, QUIET), Cell(visible(side.model.class_name), TITLE)),
        details=((Cell(visible(side.target)), Cell(size, QUIET)),),
    )
    return laid_out([entry], width=page.width)


def verdict_text(comparison: Comparison) -> str:
    """Return in one sentence whether the two are equal."""
    matched = counted(len(comparison.pairs), "norm call")
    compared = _values_text(comparison)
    if comparison.equal:
        return f"no difference: {matched} at the same places, with equal facts{compared}"
    return f"different in {_different_text(comparison)}; {matched} matched{compared}"


def _different_text(comparison: Comparison) -> str:
    stored = sum(found.of_weights for found in comparison.differences)
    facts = len(comparison.differences) - stored
    values = len(comparison.unequal_values)
    told = [
        *([f"{counted(facts, 'fact')} of the structure"] if facts else []),
        *([counted(stored, "stored tensor")] if stored else []),
        *([f"the values of {counted(values, 'parameter')}"] if values else []),
    ]
    return " and ".join(filter(None, (", ".join(told[:-1]), told[-1])))


def _values_text(comparison: Comparison) -> str:
    if comparison.values is None:
        return "; weights not compared"
    largest = greatest([0.0, *(value.largest for value in comparison.values)])
    count = counted(len(comparison.values), "parameter")
    return f"; values of {count} compared, largest difference {largest:.3g}{_nan_text(comparison)}"


def _nan_text(comparison: Comparison) -> str:
    """Tell of NaNs that both sides have: they are equal, and a fault all the same."""
    broken = comparison.nan_values
    if not broken:
        return ""
    named = [
        f"{value_name(value)} ({counted(value.both_nan, 'channel')})"
        for value in broken[:_MOST_VALUES]
    ]
    more = [f"{len(broken) - _MOST_VALUES} more"] if len(broken) > _MOST_VALUES else []
    return f"; NaN at the same places on both sides: {', '.join(named + more)}"


def difference_rows(differences: Sequence[Difference]) -> tuple[DifferenceRow, ...]:
    """Join the differences that equal blocks of one stack share, in order of first appearance."""
    groups: dict[tuple[str, str, str, str], list[int]] = {}
    for found in differences:
        fact, left, right = (visible(text) for text in (found.fact, found.left, found.right))
        key = (_where(found), fact, left, right)
        indices = groups.setdefault(key, [])
        if found.stack is not None and found.index is not None:
            indices.append(found.index)
    return tuple(_row(key, indices) for key, indices in groups.items())


def _row(key: tuple[str, str, str, str], indices: Sequence[int]) -> DifferenceRow:
    where, fact, left, right = key
    return DifferenceRow(
        where=where, blocks=index_ranges(indices), fact=fact, left=left, right=right
    )


def _where(found: Difference) -> str:
    """Return the name with `*` for the block, and beside it the other model's name."""
    own = _starred(found.where, found)
    other = None if found.other is None else _starred(found.other, found)
    return own if other is None or other == own else f"{own} | {other}"


def _starred(name: str, found: Difference) -> str:
    if found.stack is None or found.index is None:
        return visible(name)
    block = f"{found.stack}.{found.index}"
    if name == block:
        return f"{visible(found.stack)}.*"
    within = within_block(name, block)
    inside = name.startswith((f"{block}.", f"{block}:"))
    return f"{visible(found.stack)}.*.{within}" if inside else within


def _table(rows: Sequence[DifferenceRow], page: Page) -> list[Text]:
    header = _entry(*(Cell(name, QUIET) for name in ("where", "blocks", "fact", "A", "B")))
    by_place: dict[str, list[tuple[Cell, ...]]] = {}
    for row in rows:
        facts = (row.blocks, row.fact, row.left, row.right)
        by_place.setdefault(row.where, []).append(tuple(map(Cell, facts)))
    entries = [
        Entry(lead=(Cell(where, PATH),), details=tuple(facts)) for where, facts in by_place.items()
    ]
    return laid_out(entries, width=page.width, indent=_INDENT, header=header)


def _entry(lead: Cell, *details: Cell) -> Entry:
    return Entry(lead=(lead,), details=(details,))


# Values.


def worst_values(comparison: Comparison) -> Sequence[ValueDifference]:
    """Return the parameters that differ beyond the tolerance, the furthest apart first.

    Those that are no numbers come before all others.
    """
    return sorted(
        comparison.unequal_values,
        key=lambda value: (not math.isnan(value.relative), -value.relative, value.left),
    )


def _values(comparison: Comparison, page: Page) -> Iterator[Text]:
    worst = worst_values(comparison)
    header = _entry(
        *(Cell(name, QUIET) for name in ("parameter", "relative", "largest", "channel"))
    )
    entries = [
        _entry(Cell(value_name(value), PATH), *map(Cell, _figures(value)))
        for value in worst[:_MOST_VALUES]
    ]
    yield from laid_out(entries, width=page.width, indent=_INDENT, header=header)
    if len(worst) > _MOST_VALUES:
        yield Text(f"{' ' * _INDENT}and {len(worst) - _MOST_VALUES} more", style=QUIET)


def value_name(value: ValueDifference) -> str:
    """Return the parameter's name, both where they differ."""
    if value.left == value.right:
        return visible(value.left)
    return f"{visible(value.left)} | {visible(value.right)}"


def _figures(value: ValueDifference) -> tuple[str, ...]:
    channel = "" if value.channel is None else str(value.channel)
    return (f"{value.relative:.3g}", f"{value.largest:.3g}", channel)
