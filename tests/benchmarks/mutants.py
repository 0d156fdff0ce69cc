"""Small changes of the analysis that no test sees: a bounded program of mutation testing.

    python tests/benchmarks/mutants.py COPY --seconds 1800 --report survivors.txt

COPY is a copy of this repository: its files are changed one at a time and put back. Every mutant is
run in a process that is forked from one that has imported torch; the tests stop at the first
failure. The order of the mutants is that of a seed, so that a part of them is a fair sample.
"""

import argparse
import ast
import contextlib
import copy
import importlib
import io
import os
import random
import resource
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PACKAGES = ("norms", "residuals", "placement")
TESTS = (
    "tests/properties/test_specimens.py",
    "tests/functional/test_near_misses.py",
    "tests/functional/test_wirings.py",
    "tests/functional/test_modules.py",
    "tests/functional/test_pieces.py",
    "tests/unit/test_residuals_long_sums.py",
    "tests/unit/test_norms_schema_defaults.py",
)
LIBRARIES = ("torch", "torch.nn.functional", "numpy", "pytest", "hypothesis", "transformers")
_SECONDS = 120
"""Of computing, for the tests of one mutant: some never end."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One file with one change."""

    file: Path
    line: int
    operator: str
    was: str
    becomes: str
    source: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line} {self.operator}: {self.was}  ->  {self.becomes}"


def mutants_of(file: Path, root: Path) -> Iterator[Mutant]:
    """Yield every mutant of a file."""
    tree = ast.parse((root / file).read_text())
    count = sum(1 for _ in ast.walk(tree))
    for place in range(count):
        node = _nth(tree, place)
        for operator in _operators(node):
            changed = copy.deepcopy(tree)
            target = _nth(changed, place)
            was = ast.unparse(target)
            _change(target, operator)
            ast.fix_missing_locations(changed)
            yield Mutant(
                file=file,
                line=getattr(node, "lineno", 0),
                operator=operator,
                was=was.splitlines()[0][:90],
                becomes=ast.unparse(target).splitlines()[-1][:90],
                source=ast.unparse(changed),
            )


def _nth(tree: ast.AST, place: int) -> ast.AST:
    return next(node for number, node in enumerate(ast.walk(tree)) if number == place)


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
    return node.value is None or (isinstance(node.value, ast.Constant) and node.value.value is None)


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


def tested(root: Path, tests: tuple[str, ...], seconds: int) -> str:
    """Run the tests of `root` in a child: killed, survived, or killed by its time."""
    child = os.fork()
    if child == 0:
        try:
            os._exit(_run(root, tests, seconds))
        finally:  # never goes on as the parent
            os._exit(70)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return "timed out"
    return "survived" if os.WEXITSTATUS(status) == 0 else "killed"


def _run(root: Path, tests: tuple[str, ...], seconds: int) -> int:
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
    os.chdir(root)
    sys.path.insert(0, str(root))
    for name in [name for name in sys.modules if name.partition(".")[0] == "normscope"]:
        del sys.modules[name]
    import pytest

    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        # What was imported before is not rewritten, and its asserts work all the same.
        options = ["-x", "-q", "-p", "no:cacheprovider", "--tb=no", "-W", "ignore:Module already"]
        # One file after the other: most mutants are seen by the first, and the others cost imports.
        return next((1 for file in tests if pytest.main([*options, file])), 0)


@contextlib.contextmanager
def put_in_place(mutant: Mutant, root: Path) -> Iterator[None]:
    """Have the mutant stand in the tree while the block runs."""
    path = root / mutant.file
    before, facts = path.read_bytes(), path.stat()
    try:
        path.write_text(mutant.source)
        yield
    finally:
        path.write_bytes(before)
        # What Python has compiled of the file counts again.
        os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))


def main() -> None:
    """Run as many mutants as the time allows and print what came of them."""
    parser = argparse.ArgumentParser()
    parser.add_argument("copy", type=Path)
    parser.add_argument("--packages", nargs="+", default=PACKAGES)
    parser.add_argument("--tests", nargs="+", default=TESTS)
    parser.add_argument("--seconds", type=float, default=1800.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--again", type=Path, help="a report: only the mutants that it lists")
    parser.add_argument("--report", type=Path, default=Path("survivors.txt"))
    typed = parser.parse_args()
    root = typed.copy.resolve()
    files = [
        path.relative_to(root)
        for package in typed.packages
        for path in sorted((root / "normscope" / package).glob("*.py"))
    ]
    mutants = [mutant for file in files for mutant in mutants_of(file, root)]
    random.Random(typed.seed).shuffle(mutants)
    if typed.again is not None:
        listed = set(typed.again.read_text().splitlines())
        mutants = [mutant for mutant in mutants if str(mutant) in listed]
    sys.dont_write_bytecode = True
    for name in LIBRARIES:
        importlib.import_module(name)
    tests = tuple(typed.tests)
    if tested(root, tests, 10 * _SECONDS) != "survived":
        raise SystemExit("the tests fail without any mutant")
    _judge(mutants, root, tests, typed.seconds, typed.report)


def _judge(
    mutants: list[Mutant], root: Path, tests: tuple[str, ...], seconds: float, report: Path
) -> None:
    counts: Counter[str] = Counter()
    begun = time.monotonic()
    with report.open("w") as survivors:
        for mutant in mutants:
            if time.monotonic() - begun > seconds:
                break
            with put_in_place(mutant, root):
                found = tested(root, tests, _SECONDS)
            counts[found] += 1
            if found == "survived":
                print(mutant, file=survivors, flush=True)
            if sum(counts.values()) % 10 == 0:
                print(f"{sum(counts.values())} of {len(mutants)}: {dict(counts)}", flush=True)
    print(f"{sum(counts.values())} of {len(mutants)}: {dict(counts)}")


if __name__ == "__main__":
    main()
