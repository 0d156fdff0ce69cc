"""Answers whose every word is a stranger's: what names, tokens and configs may hold."""

from dataclasses import replace

from golden.inspections import INSIDE, Part, Style, block, inspection, norms_of, stack
from normscope.comparison import Compared, Comparison, Difference
from normscope.graph import Assumption
from normscope.inspection import BranchKind, Evidence, Inspection, ModelFacts, Placement, Role
from normscope.statistics import (
    InputFacts,
    Moments,
    NormStatistics,
    Statistics,
    StatisticsFinding,
    Token,
)
from normscope.weights.report import ValueDifference

HOSTILE = (
    "\x1b[2J\r\n::error::x\0 ##[error]y ##vso[task.complete]z [bold]w[/bold] a|b `c` $\\frac$ "
    "<script>&amp;</script></svg> \ud800\u202e @all #1 {0} [t](u) \ufffe \"' \u2028::warning::v"
)
STARTS = (
    "::error::x",
    "=cmd|' /C calc'!A0",
    "+1",
    "-1",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    "a\rb",
    HOSTILE,
)
LONG = "x" * 1_000_000


def hostile_inspection(word: str = HOSTILE) -> Inspection:
    part = Part(
        kind=BranchKind.OTHER,
        placement=Placement.UNKNOWN,
        formula=word,
        norms=((INSIDE, word, (word,)),),
        reason=word,
    )
    made = block(f"{word}.0", word, 0, (part,))
    evidence = Evidence(step=word, operation=word, module=word, source=word)
    made = replace(made, branches=(replace(made.branches[0], evidence=(evidence,)),))
    norms = norms_of(f"{word}.0", (part,), Style(kind=word, gain=word))
    norms = [replace(norm, statistics_dtype=word, foldable_reason=word) for norm in norms]
    norms.append(replace(norms[0], name=word, block=None, role=Role.UNPLACED, calls=0))
    stacks = [stack(word, [made], [[0]])]
    return inspection(
        word, word, 12, stacks, [made], norms,
        model=facts(word),
        towers=(word,),
        assumptions=(Assumption(question=word, where=word, answer=word),),
        warnings=(word,),
    )  # fmt: skip


def facts(word: str) -> ModelFacts:
    return ModelFacts(class_name=word, model_type=word, revision=word, parameters=12, dtype=word)


def hostile_comparison(word: str = HOSTILE) -> Comparison:
    side = Compared(target=word, model=facts(word), versions={"normscope": word})
    difference = Difference(
        where=word, stack=None, index=None, fact=word, left=word, right=word, other=f"{word}2"
    )
    value = ValueDifference(
        left=word, right=f"{word}2", largest=float("nan"), relative=float("nan"), channel=0
    )
    return Comparison(left=side, right=side, differences=(difference,), pairs=(), values=(value,))


def hostile_statistics(words: tuple[str, ...] = STARTS) -> Statistics:
    count, name = len(words), words[-1]
    tokens = tuple(
        Token(sequence=0, position=place, id=place, text=word, special=False)
        for place, word in enumerate(words)
    )
    moments = Moments(
        mean=tuple(range(count)),
        variance=tuple(10.0**place for place in range(count)),
        peak=tuple(10.0**place for place in range(count)),
        peak_channel=(0,) * count,
    )
    norm = NormStatistics(
        name=f"{name}.0.n", call=0, role=Role.BRANCH_INPUT, kind=name, block=f"{name}.0",
        before=moments, after=moments,
    )  # fmt: skip
    norms = (
        norm,
        replace(norm, name=f"{name}.1.n", block=f"{name}.1"),
        replace(norm, name=name, before=None, after=None, problem=name),
        replace(norm, name=name, rows_per_token=None, rows=name),
    )
    finding = StatisticsFinding(
        code="NS401", severity="warning", where=name, message=name, token=tokens[-1]
    )
    return Statistics(
        target=name,
        versions={"normscope": name},
        model=facts(name),
        dtype="float32",
        device="cpu",
        input=InputFacts(sequences=1, tokens=count, padding=0, special=0),
        tokens=tokens,
        norms=norms,
        findings=(finding,),
    )
