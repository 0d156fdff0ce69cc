"""What holds for every test: no network, no kept answers, no word from the terminal around it."""

import os
from itertools import count

import pytest

from older import is_collected

# Before transformers or huggingface_hub is imported: they read it once.
os.environ["HF_HUB_OFFLINE"] = "1"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what the installed transformers is too old for; `older.py` says what and why."""
    kept: list[pytest.Item] = []
    left: list[pytest.Item] = []
    for item in items:
        given = getattr(getattr(item, "callspec", None), "params", {})
        about = given.get("model_type", given.get("name"))
        (kept if is_collected(item.nodeid, about) else left).append(item)
    if left:
        items[:] = kept
        config.hook.pytest_deselected(items=left)


_TERMINAL = ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE", "PY_COLORS")


@pytest.fixture(autouse=True)
def _same_terminal_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in _TERMINAL:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")


_runs = count()


@pytest.fixture(autouse=True)
def _own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.getbasetemp() / f"cache-{next(_runs)}"
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
