"""What holds for every test: no network, and no word from the terminal that runs them."""

import os

import pytest

# Before transformers or huggingface_hub is imported: they read it once.
os.environ["HF_HUB_OFFLINE"] = "1"

_TERMINAL = ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE", "PY_COLORS")


@pytest.fixture(autouse=True)
def _same_terminal_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in _TERMINAL:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
