"""`expect` of a policy -> Expectation."""

from dataclasses import fields

from normscope.audit.expectations import Expectation
from normscope.audit.policy_table import PolicyTable
from normscope.inspection import Placement
from normscope.norms.norm import Gain, NormKind

PLACEMENTS = tuple(name.value for name in Placement if name is not Placement.UNKNOWN)
"""What can be expected; an unknown placement is a finding of NS107 whatever a policy says."""
KINDS = tuple(kind.value for kind in NormKind)
GAINS = tuple(gain.value for gain in Gain)
DTYPES = ("float32", "float16", "bfloat16", "float64")

EXPECT_KEYS = tuple(item.name for item in fields(Expectation))
_OF_THE_MODEL = frozenset({"embedding_norm", "stacks"})
STACK_KEYS = tuple(key for key in EXPECT_KEYS if key not in _OF_THE_MODEL)


def read_expect(owner: PolicyTable, title: str) -> Expectation:
    """Read the `expect` of a family or an override; what is wrong is noted in the source."""
    table = owner.table("expect", f"[{title}.expect]", EXPECT_KEYS)
    if table is None:
        return Expectation()
    stacks = table.table("stacks", f'[{title}.expect.stacks."PATH"]')
    return _expectation(table, {} if stacks is None else _stacks(stacks, title))


def _stacks(table: PolicyTable, title: str) -> dict[str, Expectation]:
    elsewhere = dict.fromkeys(_OF_THE_MODEL, f"[{title}.expect]: it is a fact of the model")
    found = {}
    for path in table.values:
        header = f'[{title}.expect.stacks."{path}"]'
        stack = table.table(path, header, STACK_KEYS, elsewhere)
        if stack is not None:
            found[path] = _expectation(stack, {})
    return found


def _expectation(table: PolicyTable, stacks: dict[str, Expectation]) -> Expectation:
    return Expectation(
        placement=table.text("placement", PLACEMENTS, "placement to expect"),
        norm=table.text("norm", KINDS, "kind of norm"),
        eps=table.number("eps"),
        gain=table.text("gain", GAINS, "form of a gain"),
        bias=table.flag("bias"),
        final_norm=table.flag("final_norm"),
        embedding_norm=table.flag("embedding_norm"),
        qk_norm=table.flag("qk_norm"),
        parallel=table.flag("parallel"),
        statistics_dtype=table.text("statistics_dtype", DTYPES, "dtype of statistics"),
        norms=table.count("norms"),
        stacks=stacks,
    )
