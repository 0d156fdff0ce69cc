"""`normscope audit` in the current folder: its targets and its policy, a run, and what it said."""

import json
from pathlib import Path

from typer.testing import CliRunner, Result

from normscope.cli.app import app
from specimens.tiny import tiny_policy, write_config


def write_target(name: str, **changes: object) -> str:
    """Write a config below `checkpoints`, with what is changed; return the target."""
    return write_config(Path("checkpoints") / name, **changes).as_posix()


def write_policy(placement: str = "pre-norm", more: str = "") -> None:
    """Write the policy that is found without being named."""
    Path("normscope.toml").write_text(tiny_policy(placement) + more)


def run(*arguments: str, command: str = "audit", stdin: str | None = None) -> Result:
    """Run a command in this process."""
    return CliRunner().invoke(app, [command, *arguments], input=stdin)


def lines(result: Result) -> list[dict[str, object]]:
    """Return the documents of jsonl."""
    return [json.loads(line) for line in result.stdout.splitlines()]


def findings(result: Result) -> list[tuple[str, str, bool]]:
    """Return target, code and whether it is known of every finding of jsonl."""
    return [
        (line["target"], finding["code"], finding["known"])
        for line in lines(result)
        for finding in line.get("findings", ())
        if isinstance(finding, dict)
    ]
