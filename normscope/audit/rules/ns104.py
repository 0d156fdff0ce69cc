"""NS104: a norm whose name says another thing than the dataflow."""

from collections.abc import Iterator

from normscope.audit.findings import Observation, Severity
from normscope.audit.misleading_names import contradiction
from normscope.audit.rule import Rule, Subject
from normscope.audit.stacks import blocks_by_path
from normscope.inspection import BlockReport, BranchKind, NormReport, Site


def check(subject: Subject) -> Iterator[Observation]:
    """Find norms that a reader of their names would take for something else."""
    blocks = blocks_by_path(subject.inspection)
    for norm in subject.inspection.norms:
        block = blocks.get(norm.block or "")
        told = contradiction(norm.name, norm.role, _branch_of(norm, block)) if norm.calls else None
        if told is not None:
            named, _, does = told.partition(", but ")
            yield Observation(
                where=norm.name, message=told, found=named, expected=does, block=block
            )


def _branch_of(norm: NormReport, block: BlockReport | None) -> BranchKind | None:
    if block is None:
        return None
    site = next((site for site in Site if site.value == norm.role.value), None)
    return next(
        (b.kind for b in block.branches if site is not None and norm.name in b.norms.get(site, ())),
        None,
    )


RULE = Rule(
    code="NS104",
    title="name that says another thing than the dataflow",
    what="Compares the words of each norm's own name (post, pre, before, after, input, output, "
    "final, embedding) with where the norm stands. No verdict rests on a name; this rule is about "
    "names. A note, and off unless it is selected.",
    severity=Severity.NOTE,
    why="Ports are written from names: `post_attention_layernorm` is the pre-norm of the MLP in "
    "Llama, and the norm of the attention's output in Gemma 2.",
    mend="Nothing in the checkpoint. Go by the role that `normscope inspect TARGET --norms` shows.",
    check=check,
    usual=False,
)
