"""The compilation of rows.c, where it can and where it cannot."""

import importlib.util
import shutil
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "normscope" / "activations" / "rows.c"


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The build hook, without hatchling, which only a build has."""
    interface = ModuleType("hatchling.builders.hooks.plugin.interface")
    interface.BuildHookInterface = object  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, interface.__name__, interface)
    spec = importlib.util.spec_from_file_location("compile_rows", ROOT / ".ci" / "compile_rows.py")
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def test_a_library_is_made_where_there_is_a_compiler(hook: ModuleType, tmp_path: Path) -> None:
    target = tmp_path / "rows.so"
    made = hook.compile_rows(SOURCE, target)
    assert made == target.exists()
    assert made or not (sys.platform == "linux" and shutil.which("gcc"))


@pytest.mark.parametrize("compiler", ["/nowhere/cc", "false"])
def test_without_a_compiler_no_older_library_is_left(
    hook: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compiler: str
) -> None:
    monkeypatch.setenv("CC", compiler)
    target = tmp_path / "rows.so"
    target.write_bytes(b"an older one")
    assert not hook.compile_rows(SOURCE, target)
    assert not target.exists()
