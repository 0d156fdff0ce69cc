"""The laws of the house that a program can check."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "normscope"
FILES = sorted(PACKAGE.rglob("*.py"))
DRAWERS = {"utils", "util", "common", "helpers", "helper", "misc"}
MOST_LINES_OF_A_FILE = 300
MOST_LINES_OF_A_FUNCTION = 40

Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions(source: str) -> Iterator[Function]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, Function):
            yield node


def body_lines(function: Function) -> int:
    """Count the lines of the body without its docstring; a signature may be as long as it needs."""
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    return body[-1].end_lineno - body[0].lineno + 1 if body else 0


def shown(path: Path) -> str:
    return str(path.relative_to(PACKAGE))


@pytest.mark.parametrize("path", FILES, ids=shown)
def test_one_idea_a_file(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= MOST_LINES_OF_A_FILE


@pytest.mark.parametrize("path", FILES, ids=shown)
def test_one_idea_a_function(path: Path) -> None:
    long = {
        function.name: body_lines(function)
        for function in functions(path.read_text(encoding="utf-8"))
        if body_lines(function) > MOST_LINES_OF_A_FUNCTION
    }
    assert long == {}


def test_a_function_lives_with_its_noun() -> None:
    assert [shown(path) for path in FILES if path.stem in DRAWERS] == []


@pytest.mark.parametrize("path", FILES, ids=shown)
def test_every_module_says_what_it_is(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize("path", FILES, ids=shown)
def test_nothing_is_left_for_later(path: Path) -> None:
    later = re.compile(r"\b(?:TO" r"DO|FIX" r"ME|XX" r"X)\b|raise NotImplemented")
    assert later.findall(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("name", ["graph.py", "inspection.py", "statistics.py", "norms/norm.py"])
def test_what_crosses_a_border_is_frozen(name: str) -> None:
    tree = ast.parse((PACKAGE / name).read_text(encoding="utf-8"))
    classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    loose = [c.name for c in classes if any(_is_loose(d) for d in c.decorator_list)]
    assert classes
    assert loose == []


def _is_loose(decorator: ast.expr) -> bool:
    if isinstance(decorator, ast.Name):
        return decorator.id == "dataclass"
    return (
        isinstance(decorator, ast.Call)
        and isinstance(decorator.func, ast.Name)
        and decorator.func.id == "dataclass"
        and not any(keyword.arg == "frozen" for keyword in decorator.keywords)
    )


def test_the_measure_sees_a_long_function() -> None:
    lines = "\n".join(f"    x = {n}" for n in range(41))
    (function,) = functions(f'def f():\n    """Say."""\n{lines}\n')
    assert body_lines(function) == 41
