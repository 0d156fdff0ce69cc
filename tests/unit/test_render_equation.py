"""Formulas of the report, taken apart for the drawing."""

import pytest

from normscope.inspection import FORMULAS, Placement
from normscope.render.equation import Equation, read_equation

AFTER_THE_SUM = {Placement.POST, Placement.PRE_POST}


@pytest.mark.parametrize("placement", FORMULAS)
def test_every_named_formula_is_understood(placement: Placement) -> None:
    read = read_equation(FORMULAS[placement], normalized=placement in AFTER_THE_SUM)
    assert read is not None
    assert (read.skip, read.sign) == ((), "+")
    leaving = placement in {Placement.RES_POST, Placement.SANDWICH}
    assert read.branch == (("N",) if leaving else ())


@pytest.mark.parametrize(
    ("formula", "normalized", "skip", "sign", "branch"),
    [
        ("x + 0.5·f(N(x))", False, (), "+", ("0.5·",)),
        ("N(x + 0.5·f(N(x)))", True, (), "+", ("0.5·",)),
        ("γ·x + γ·f(N(x))", False, ("γ·",), "+", ("γ·",)),
        ("0.948·x + 0.3·N(2.5·f(N(x)))", False, ("0.948·",), "+", ("2.5·", "N", "0.3·")),
        ("x + γ·0.5·f(x)", False, (), "+", ("0.5·", "γ·")),
        ("N(x) + N(f(x))", False, ("N",), "+", ("N",)),
        ("N(P(x)) + N(f(x))", False, ("P", "N"), "+", ("N",)),
        ("P(N(x)) + f(N(x))", False, ("N", "P"), "+", ()),
        ("γ·P(x) + f(x)", False, ("P", "γ·"), "+", ()),
        ("N(g·x + g·f(N(x)))", True, ("g·",), "+", ("g·",)),
        ("x - g·f(x)", False, (), "-", ("g·",)),
        ("x + -1·f(x)", False, (), "+", ("-1·",)),
        ("x + 1e-05·f(x)", False, (), "+", ("1e-05·",)),
        ("x + σ(N(f(x)))", False, (), "+", ("N", "σ")),
        ("x + f(N(x), x)", False, (), "+", ()),
        ("H·x + f(N(x))", False, ("H·",), "+", ()),
        ("f(N(x))", False, None, "", ()),
        ("σ(N(f(x)))", False, None, "", ("N", "σ")),
    ],
)
def test_what_the_skip_and_the_branch_pass(
    formula: str, normalized: bool, skip: tuple[str, ...] | None, sign: str, branch: tuple[str, ...]
) -> None:
    expected = Equation(skip=skip, sign=sign, branch=branch)
    assert read_equation(formula, normalized=normalized) == expected


@pytest.mark.parametrize("formula", ["", "?", "x", "y + f(x)", "x + ", "x + x", "x + Q(f(x))", "·"])
def test_another_form_is_not_guessed(formula: str) -> None:
    assert read_equation(formula, normalized=False) is None
    assert read_equation(formula, normalized=True) is None
