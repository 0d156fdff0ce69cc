"""NS403: a value that does not fit float16."""

from collections.abc import Iterator
from dataclasses import replace

from normscope.audit.findings import Observation, Severity
from normscope.audit.measured import measured
from normscope.audit.rule import Need, Rule, Subject


def check(subject: Subject) -> Iterator[Observation]:
    """Yield the findings of `stats`.

    Who accepts a square that does not fit has not accepted a value that does not.
    """
    for seen in measured(subject, "NS403", "beyond float16", "values that fit float16"):
        whole = seen.severity is Severity.ERROR
        yield seen if whole else replace(seen, found="square beyond float16")


RULE = Rule(
    code="NS403",
    title="value that does not fit float16",
    what="Looks for values over 65,504 before or after a norm (an error), and for values over 255 "
    "before a norm that squares in half precision (a warning), and names the first block "
    "where it happens. A run in float32 or bfloat16 tells it too.",
    severity=Severity.ERROR,
    why="In float16 such a value is infinite and the next norm makes NaN of it: T5 and Gemma 3 "
    "answer nothing that way.",
    mend="Run the model in bfloat16 or float32, or keep the named blocks in float32.",
    check=check,
    needs=Need.STATISTICS,
)
