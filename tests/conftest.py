"""What holds for every test: no network, no kept answers, no word from the terminal around it."""

import os
from itertools import count

import pytest

# Before transformers or huggingface_hub is imported: they read it once.
os.environ["HF_HUB_OFFLINE"] = "1"

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
