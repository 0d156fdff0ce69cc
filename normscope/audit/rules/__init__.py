"""Every rule, by code, and which of them are meant."""

from collections.abc import Sequence
from difflib import get_close_matches

from normscope.audit.rule import Rule
from normscope.audit.rules import (
    ns101,
    ns102,
    ns103,
    ns104,
    ns105,
    ns106,
    ns107,
    ns108,
    ns201,
    ns202,
    ns203,
    ns204,
    ns301,
    ns302,
    ns303,
    ns304,
    ns305,
    ns401,
    ns402,
    ns403,
    ns404,
    ns405,
    ns406,
    ns501,
    ns502,
)
from normscope.errors import UsageError

RULES: tuple[Rule, ...] = tuple(
    module.RULE
    for module in (
        *(ns101, ns102, ns103, ns104, ns105, ns106, ns107, ns108),
        *(ns201, ns202, ns203, ns204),
        *(ns301, ns302, ns303, ns304, ns305),
        *(ns401, ns402, ns403, ns404, ns405, ns406),
        *(ns501, ns502),
    )
)
"""In order of their codes."""

_BY_CODE = {rule.code: rule for rule in RULES}


def rule_of(code: str) -> Rule | None:
    """Return the rule of a code, or None."""
    return _BY_CODE.get(code)


def required_rule(code: str) -> Rule:
    """Return the rule of a code; raises `UsageError`, with the nearest, where there is none."""
    rule = rule_of(code.strip().upper())
    if rule is None:
        raise _no_such_rule(code)
    return rule


def select_rules(select: Sequence[str] | None, ignore: Sequence[str]) -> tuple[str, ...]:
    """Return the codes of the rules to check, sorted; None selects the usual ones.

    What is selected and ignored are codes, or what codes begin with, in capitals or not (`NS2`).
    Raises `UsageError` where one of them is the beginning of no code.
    """
    for text in (*(select or ()), *ignore):
        if not begins_a_code(text):
            raise _no_such_rule(text)
    selected = tuple(text.upper() for text in select or ())
    ignored = tuple(text.upper() for text in ignore)
    return tuple(
        rule.code
        for rule in RULES
        if (rule.usual if select is None else rule.code.startswith(selected))
        and not rule.code.startswith(ignored)
    )


def begins_a_code(text: str) -> bool:
    """Tell whether a text, in capitals or not, is a code or the beginning of one."""
    return bool(text) and any(rule.code.startswith(text.upper()) for rule in RULES)


def nearest_rules(text: str) -> str:
    """Return a hint for what begins no code: the nearest one, or what codes begin with."""
    listed = "`normscope rule` lists every rule with its code"
    near = get_close_matches(text.upper(), list(_BY_CODE), n=1, cutoff=0.5)
    if near and len(text) >= len(near[0]):
        return f"did you mean {near[0]}? {listed}"
    beginnings = dict.fromkeys(rule.code[:-2] for rule in RULES)
    return f"codes begin with {', '.join(beginnings)}; {listed}"


def _no_such_rule(text: str) -> UsageError:
    return UsageError(f"there is no rule {text!r}", nearest_rules(text))
