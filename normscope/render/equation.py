"""A branch's formula -> what the skip and the branch pass, in the order of the dataflow."""

import re
from dataclasses import dataclass

_SCALED = re.compile(r"(?P<factor>[^()·]+)·(?P<rest>.+)")
_APPLIED = re.compile(r"(?P<function>[NPσ])\((?P<rest>.+)\)")
_SUM = re.compile(r" (?P<sign>[+-]) ")

NORM = "N"


@dataclass(frozen=True, slots=True, kw_only=True)
class Equation:
    """`N(γ·x + 0.5·N(f(x)))` is skip `γ·`, branch `N`, `0.5·`; a sum that is normalized."""

    skip: tuple[str, ...] | None
    """What x passes on its way to the addition; None without a skip."""
    sign: str
    branch: tuple[str, ...]
    """What the branch's result passes: a factor with its dot, `N` for its norm, `σ`."""


def read_equation(formula: str, *, normalized: bool) -> Equation | None:
    """Take a formula of the report apart; None where it is not of the known form.

    `normalized` says that the whole sum passes a norm.
    """
    whole = formula[2:-1] if normalized and formula.startswith("N(") else formula
    addition = _SUM.search(whole)
    if addition is None:
        skip: tuple[str, ...] | None = None
        branch = _passed(whole, "f(")
    else:
        skip = _passed(whole[: addition.start()], "x")
        branch = _passed(whole[addition.end() :], "f(")
        if skip is None:
            return None
    if branch is None:
        return None
    return Equation(skip=skip, sign=addition["sign"] if addition else "", branch=branch)


def _passed(text: str, core: str) -> tuple[str, ...] | None:
    """Peel a term from the outside down to `core`; return the layers, the innermost first."""
    layers: list[str] = []
    while not (text == core or (core.endswith("(") and text.startswith(core))):
        if found := _SCALED.fullmatch(text):
            layers.insert(0, f"{found['factor']}·")
        elif found := _APPLIED.fullmatch(text):
            layers.insert(0, found["function"])
        else:
            return None
        text = found["rest"]
    return tuple(layers)
