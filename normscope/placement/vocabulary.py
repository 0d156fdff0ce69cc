"""The words for where norms stand: sites are facts, names follow from them."""

from collections.abc import Mapping
from enum import StrEnum


class Placement(StrEnum):
    """Where the norms of a branch stand; see `FORMULAS` for what each one computes."""

    PRE = "pre-norm"
    POST = "post-norm"
    RES_POST = "res-post-norm"
    SANDWICH = "sandwich-norm"
    PRE_POST = "pre+post"
    NO_NORM = "no-norm"
    OTHER = "other"
    UNKNOWN = "unknown"
    MIXED = "mixed"


class Site(StrEnum):
    """Where a norm stands around a residual add."""

    BRANCH_INPUT = "branch_input"
    INSIDE_BRANCH = "inside_branch"
    BRANCH_OUTPUT = "branch_output"
    TRUNK = "trunk"


class Role(StrEnum):
    """What a norm is for: its site in a branch, or its place around the stacks."""

    BRANCH_INPUT = "branch_input"
    INSIDE_BRANCH = "inside_branch"
    BRANCH_OUTPUT = "branch_output"
    TRUNK = "trunk"
    EMBEDDING = "embedding"
    FINAL = "final"
    STACK_INPUT = "stack_input"
    BETWEEN_STACKS = "between_stacks"
    HEAD = "head"
    POOLER = "pooler"
    UNPLACED = "unplaced"


FORMULAS: Mapping[Placement, str] = {
    Placement.PRE: "x + f(N(x))",
    Placement.POST: "N(x + f(x))",
    Placement.RES_POST: "x + N(f(x))",
    Placement.SANDWICH: "x + N(f(N(x)))",
    Placement.PRE_POST: "N(x + f(N(x)))",
    Placement.NO_NORM: "x + f(x)",
}
"""The formula of each named placement; N is the block's norm and f the branch."""

_NAMES: Mapping[frozenset[Site], Placement] = {
    frozenset({Site.BRANCH_INPUT}): Placement.PRE,
    frozenset({Site.TRUNK}): Placement.POST,
    frozenset({Site.BRANCH_OUTPUT}): Placement.RES_POST,
    frozenset({Site.BRANCH_INPUT, Site.BRANCH_OUTPUT}): Placement.SANDWICH,
    frozenset({Site.BRANCH_INPUT, Site.TRUNK}): Placement.PRE_POST,
    frozenset(): Placement.NO_NORM,
}


def name_of_sites(sites: frozenset[Site]) -> Placement:
    """Return the name of a set of sites; norms inside the branch do not count."""
    return _NAMES.get(sites - {Site.INSIDE_BRANCH}, Placement.OTHER)


def shared_name(placements: list[Placement]) -> Placement:
    """Return the one name that all share, `mixed` where they differ, `unknown` for none at all."""
    names = set(placements)
    if len(names) == 1:
        return names.pop()
    return Placement.MIXED if names else Placement.UNKNOWN
