"""Plan + pattern of names -> the plan for those norms alone."""

import fnmatch
from dataclasses import replace

from normscope.activations.plan import Plan
from normscope.errors import UsageError


def select_norms(plan: Plan, pattern: str | None) -> Plan:
    """Keep the norms whose name matches `pattern` (`*.ln_1`), and what is read of them.

    Raises `UsageError` where none does.
    """
    if pattern is None:
        return plan
    kept = tuple(item for item in plan.norms if fnmatch.fnmatchcase(item.norm.name, pattern))
    idle = tuple(item for item in plan.idle if fnmatch.fnmatchcase(item.name, pattern))
    if not kept and not idle:
        raise UsageError(f"no norm's name matches {pattern!r}", _examples(plan))
    read = {index for item in kept for index in (item.before, item.after) if index is not None}
    places: dict[int | None, int] = {index: place for place, index in enumerate(sorted(read))}
    return Plan(
        readings=tuple(plan.readings[index] for index in sorted(read)),
        norms=tuple(
            replace(item, before=places.get(item.before), after=places.get(item.after))
            for item in kept
        ),
        idle=idle,
    )


def _examples(plan: Plan) -> str:
    names = list(dict.fromkeys(item.norm.name for item in plan.norms))
    if not names:
        return "this model has no norm"
    return "its norms are called " + ", ".join(names[:3]) + (", …" if len(names) > 3 else "")
