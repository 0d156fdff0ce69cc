"""Help, version and usage errors come before torch is imported."""

import json
import subprocess
import sys

import pytest

HEAVY = {"torch", "transformers", "numpy", "huggingface_hub", "safetensors"}

PROGRAM = """
import json, sys
sys.argv = ["normscope", *{arguments!r}]
try:
    {body}
except SystemExit as end:
    status = end.code
sys.stderr.write("\\n" + json.dumps([status, sorted(sys.modules)]))
"""


def heavy_imports(*arguments: str, body: str) -> tuple[int, set[str]]:
    """Return the exit status of a program and which of the heavy packages it imported."""
    program = PROGRAM.format(arguments=list(arguments), body=body)
    ended = subprocess.run(
        [sys.executable, "-P", "-c", program], capture_output=True, text=True, check=True
    )
    status, modules = json.loads(ended.stderr.splitlines()[-1])
    return status, HEAVY & set(modules)


MAIN = "from normscope.cli.app import main; main()"


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["--help"], 0),
        (["--version"], 0),
        (["inspect", "--help"], 0),
        (["stats", "--help"], 0),
        (["stats"], 2),
        (["stats", "--view", "no-such-view"], 2),
        ([], 2),
        (["no-such-command"], 2),
        (["inspect"], 2),
        (["inspect", "type:bert", "--format", "yaml"], 2),
        (["inspect", "type:bert", "--output", "."], 2),
        (["inspect", "type:bert", "--explain", "x", "--format", "json"], 2),
        (["report", "--help"], 0),
        (["report"], 2),
        (["report", "no-such-file"], 2),
    ],
)
def test_no_torch_before_a_target_is_asked_for(arguments: list[str], status: int) -> None:
    assert heavy_imports(*arguments, body=MAIN) == (status, set())


def test_a_saved_report_is_rendered_without_torch() -> None:
    body = "import normscope.render.table, normscope.render.markdown; sys.exit(0)"
    assert heavy_imports(body=body) == (0, set())


def test_the_check_would_see_torch() -> None:
    status, found = heavy_imports("--help", body=f"import torch; {MAIN}")
    assert status == 0
    assert "torch" in found
