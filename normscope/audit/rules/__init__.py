"""Every rule, by code."""

from normscope.audit.rule import Rule
from normscope.audit.rules import ns101, ns102, ns103, ns105, ns106, ns107, ns108

RULES: tuple[Rule, ...] = tuple(
    module.RULE for module in (ns101, ns102, ns103, ns105, ns106, ns107, ns108)
)
"""In order of their codes."""


def rule_of(code: str) -> Rule | None:
    """Return the rule of a code, or None."""
    return next((rule for rule in RULES if rule.code == code), None)
