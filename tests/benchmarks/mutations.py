"""Source text -> the same text with one small change, and what of it a process can take over.

A changed module is not imported again: the code of its functions is put into the functions that
are there, so that whatever holds one of them has the changed one.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from types import FunctionType, ModuleType
from typing import Any

_COMPARED = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
MARKS = "_reached"
"""The global that a marked module keeps the lines of its statements in, as they run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One module with one change."""

    module: str
    line: int
    statement: int | None
    """Line of the innermost statement around the change; None outside of functions."""
    operator: str
    was: str
    becomes: str
    source: str

    def __str__(self) -> str:
        return f"{self.module}:{self.line} {self.operator}: {self.was}  ->  {self.becomes}"


def mutants_of(module: str, text: str) -> Iterator[Mutant]:
    """Yield every mutant of a module."""
    for place, (node, statement) in enumerate(_walked(ast.parse(text))):
        for operator in _operators(node):
            tree = ast.parse(text)
            target = next(item for number, (item, _) in enumerate(_walked(tree)) if number == place)
            was = ast.unparse(target)
            _change(target, operator)
            ast.fix_missing_locations(tree)
            yield Mutant(
                module=module,
                line=getattr(node, "lineno", 0),
                statement=statement,
                operator=operator,
                was=was.splitlines()[0][:90],
                becomes=ast.unparse(target).splitlines()[-1][:90],
                source=ast.unparse(tree),
            )


def _walked(
    node: ast.AST, statement: int | None = None, *, inside: bool = False
) -> Iterator[tuple[ast.AST, int | None]]:
    """Yield the nodes of a tree that may change, with the line of the statement around them."""
    if inside and isinstance(node, ast.stmt):
        statement = node.lineno
    yield node, statement
    inside = inside or isinstance(node, ast.FunctionDef)
    for name, value in ast.iter_fields(node):
        # How a dataclass is made and how lists are zipped guards the code, and decides nothing.
        if name == "decorator_list" or (isinstance(node, ast.keyword) and node.arg == "strict"):
            continue
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, ast.AST):
                own = inside and name in {"body", "orelse"}
                yield from _walked(item, statement, inside=own or statement is not None)


def _operators(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        yield "comparison"
    elif isinstance(node, ast.BoolOp) or (
        isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
    ):
        yield "boolean"
    elif isinstance(node, ast.Constant) and type(node.value) in (bool, int, float):
        yield "constant"
    elif isinstance(node, ast.Return) and not _returns_nothing(node):
        yield "return None"


def _returns_nothing(node: ast.Return) -> bool:
    """Tell what None would stand for as well: no value, None itself, and False."""
    constant = node.value.value if isinstance(node.value, ast.Constant) else node.value
    return constant is None or constant is False


def _change(node: ast.AST, operator: str) -> None:
    if isinstance(node, ast.Compare):
        node.ops = [_COMPARED[type(node.ops[0])]()]
    elif isinstance(node, ast.BoolOp):
        node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
    elif isinstance(node, ast.UnaryOp):
        node.op, node.operand = ast.Not(), ast.UnaryOp(op=ast.Not(), operand=node.operand)
    elif isinstance(node, ast.Constant):
        node.value = (not node.value) if isinstance(node.value, bool) else node.value + 1
    elif isinstance(node, ast.Return) and operator == "return None":
        node.value = ast.Constant(None)


def marked(text: str) -> str:
    """Return the text with each statement of its functions behind a note of its line."""
    return ast.unparse(ast.fix_missing_locations(_Marking().visit(ast.parse(text))))


class _Marking(ast.NodeTransformer):
    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        for name in ("body", "orelse"):
            block = getattr(node, name, None)
            if isinstance(block, list) and not isinstance(node, ast.Module | ast.ClassDef):
                setattr(node, name, [item for each in block for item in (_note(each), each)])
        return node


def _note(statement: ast.stmt) -> ast.stmt:
    return ast.parse(f"{MARKS}.add({statement.lineno})").body[0]


def take_over(module: ModuleType, before: str, after: str) -> None:
    """Give a loaded module what another text of it says otherwise."""
    was, becomes = _executed(module, before), _executed(module, after)
    for name, value in becomes.items():
        here = vars(module).get(name)
        if isinstance(value, FunctionType) and value.__module__ == module.__name__:
            _change_function(here, was[name], value)
        elif isinstance(value, type) and value.__module__ == module.__name__:
            for part, function in vars(value).items():
                own = getattr(function, "fget", function)
                if isinstance(own, FunctionType):
                    found = vars(here)[part], vars(was[name])[part]
                    _change_function(*(getattr(item, "fget", item) for item in found), own)
        elif _is_data(value) and value != was[name]:
            setattr(module, name, value)


def _is_data(value: object) -> bool:
    if isinstance(value, dict):  # a table of functions holds those that are there
        return not any(map(callable, value.values()))
    return isinstance(value, int | float)


def _executed(module: ModuleType, text: str) -> dict[str, Any]:
    found = {"__name__": module.__name__, MARKS: vars(module).setdefault(MARKS, set())}
    exec(compile(ast.parse(text), str(module.__file__), "exec"), found)
    return {name: value for name, value in found.items() if not name.startswith("__")}


def _change_function(here: Any, was: FunctionType, becomes: FunctionType) -> None:
    if was.__code__ != becomes.__code__:
        here.__code__ = becomes.__code__
    for name, value in (becomes.__kwdefaults__ or {}).items():
        if repr(value) != repr(was.__kwdefaults__[name]):
            here.__kwdefaults__[name] = value
    if repr(was.__defaults__) != repr(becomes.__defaults__):
        here.__defaults__ = becomes.__defaults__
