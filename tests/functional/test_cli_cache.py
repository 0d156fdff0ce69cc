"""The second `normscope inspect` of one config, from the shell's side."""

import json
import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from normscope.cli.app import app
from specimens.tiny import TINY

CONFIG = {**TINY, "architectures": ["LlamaForCausalLM"]}
PROGRAM = """
import json, sys
from normscope.cli.app import main
try:
    main()
except SystemExit as end:
    loaded = sorted({"torch", "transformers", "numpy"} & set(sys.modules))
    sys.stderr.write("\\n" + json.dumps([end.code, loaded]))
"""


def config_file(folder: Path, **changes: object) -> str:
    folder.mkdir(exist_ok=True)
    path = folder / "config.json"
    path.write_text(json.dumps({**CONFIG, **changes}))
    return str(path)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["inspect", *arguments])


def run_alone(*arguments: str) -> tuple[str, int, list[str]]:
    """Return what another process writes, its exit status, and the heavy packages in it."""
    ended = subprocess.run(
        [sys.executable, "-P", "-c", PROGRAM, "inspect", *arguments],
        capture_output=True,
        text=True,
        check=True,
        # The same normscope as here; and not what readline, once imported, adds: COLUMNS.
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    status, loaded = json.loads(ended.stderr.splitlines()[-1])
    return ended.stdout, status, loaded


def kept() -> list[Path]:
    folder = Path(os.environ["XDG_CACHE_HOME"]) / "normscope"
    return sorted(folder.iterdir()) if folder.exists() else []


@pytest.mark.parametrize("view", [["-f", "json"], ["--verbose"], ["--explain", "model.layers.1"]])
def test_the_second_answer_is_the_same_and_needs_no_torch(tmp_path: Path, view: list[str]) -> None:
    target = config_file(tmp_path)
    first = run(target, *view)
    assert (first.exit_code, len(kept())) == (0, 1)
    assert run_alone(target, *view) == (first.stdout, 0, [])


def test_the_check_would_see_torch(tmp_path: Path) -> None:
    _, status, loaded = run_alone(config_file(tmp_path))
    assert (status, "torch" in loaded) == (0, True)


def test_no_cache_neither_writes_nor_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = config_file(tmp_path)
    assert run(target, "--no-cache").exit_code == 0
    assert kept() == []
    run(target)
    monkeypatch.setattr("normscope.pipeline.recall_inspection", lambda _: pytest.fail("was read"))
    assert run(target, "--no-cache").exit_code == 0


def test_a_copy_of_the_config_is_answered_under_its_own_name(tmp_path: Path) -> None:
    first = json.loads(run(config_file(tmp_path / "a"), "-f", "json").stdout)
    there = config_file(tmp_path / "b")
    second = json.loads(run(there, "-f", "json").stdout)
    assert second == {**first, "target": there}
    assert len(kept()) == 1


def test_a_changed_config_is_inspected_anew(tmp_path: Path) -> None:
    assert "2 blocks" in run(config_file(tmp_path)).stdout
    assert "3 blocks" in run(config_file(tmp_path, num_hidden_layers=3)).stdout
    assert len(kept()) == 2


def test_a_failure_is_not_kept(tmp_path: Path) -> None:
    target = config_file(tmp_path, model_type="no-such-type", architectures=[])
    assert run(target).exit_code == 3
    assert kept() == []


def test_the_dtype_is_part_of_the_question(tmp_path: Path) -> None:
    target = config_file(tmp_path)
    run(target)
    document = json.loads(run(target, "--dtype", "bfloat16", "-f", "json").stdout)
    assert document["model"]["dtype"] == "bfloat16"


def test_a_folder_that_cannot_be_written_is_not_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    result = run(config_file(tmp_path / "a"))
    assert (result.exit_code, result.stderr) == (0, "")


def test_verbose_shows_where_a_target_failed(tmp_path: Path) -> None:
    target = config_file(tmp_path, hidden_act="no\x1bsuch")
    result = run(target, "--verbose")
    assert result.exit_code == 3
    assert "Traceback (most recent call last)" in result.stderr
    assert "no\\x1bsuch" in result.stderr
    assert "\x1b" not in result.stderr
    assert "Traceback" not in run(target).stderr
    assert not logging.getLogger("normscope").handlers
