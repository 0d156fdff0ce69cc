"""No network at import, in any help, or where a command needs nothing from it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from normscope.cli.app import app

COMMANDS = sorted(typer.main.get_command(app).commands)

# Python imports it before any program, in worker processes as well. All but sockets between
# processes is refused, and written down: a library may take the refusal for being offline.
SITE = """
import _socket, os, socket

def refuse(*words, **_):
    with open(os.environ["OPENED"], "a") as file:
        print(*words[-2:], file=file)
    raise OSError("no network")

_made = socket.socket.__init__

def _make(self, family=-1, *rest, **options):
    if family != socket.AF_UNIX:
        refuse("a socket")
    _made(self, family, *rest, **options)

socket.socket.__init__ = _make
for name in ("create_connection", "getaddrinfo", "gethostbyname"):
    for place in (socket, _socket):
        setattr(place, name, refuse)
"""
PROGRAM = """
import json, sys
statuses = []
def run(typed):
    from normscope.cli.app import app
    try:
        app(typed.split(), prog_name="normscope")
    except SystemExit as end:
        statuses.append(end.code)
{body}
sys.stderr.write("\\n" + json.dumps(statuses))
"""


def statuses_and_opened(folder: Path, body: str) -> tuple[list[int], str]:
    """Run a program that nothing keeps offline; return its statuses and what it tried to open."""
    (folder / "sitecustomize.py").write_text(SITE)
    opened = folder / "opened"
    opened.write_text("")
    kept = {name: value for name, value in os.environ.items() if not name.endswith("_OFFLINE")}
    ended = subprocess.run(
        [sys.executable, "-P", "-c", PROGRAM.format(body=body)],
        capture_output=True,
        text=True,
        check=True,
        env={**kept, "PYTHONPATH": str(folder), "OPENED": str(opened)},
    )
    return json.loads(ended.stderr.splitlines()[-1]), opened.read_text()


def test_every_public_name_and_every_help(tmp_path: Path) -> None:
    body = f"""
import normscope
for name in normscope.__all__:
    getattr(normscope, name)
run("--help")
for command in {COMMANDS!r}:
    run(command + " --help")
"""
    assert statuses_and_opened(tmp_path, body) == ([0] * (len(COMMANDS) + 1), "")


def test_what_needs_nothing_from_it(tmp_path: Path) -> None:
    body = """
run("inspect type:bert --no-cache")
run("stats -i norm --quiet")
run("audit demo:post-norm --no-cache --select NS1")
run("diff demo:pre-norm demo:post-norm --no-cache")
run("inspect some/model --offline --no-cache")
"""
    assert statuses_and_opened(tmp_path, body) == ([0, 0, 0, 1, 3], "")


@pytest.mark.parametrize("body", ["run('inspect some/model --no-cache')"])
def test_the_guard_would_see_it(tmp_path: Path, body: str) -> None:
    assert statuses_and_opened(tmp_path, body)[1]
