"""`normscope audit --init`: what is written, where, and what is not written over."""

from pathlib import Path

import pytest

from specimens.audits import run, write_target


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_the_policy_passes() -> None:
    targets = [write_target("a"), write_target("b", rms_norm_eps=1e-5)]
    result = run("--init", *targets)
    assert (result.exit_code, result.stderr) == (0, "")
    Path("normscope.toml").write_text(result.stdout)
    assert run().exit_code == 0
    write_target("a", rms_norm_eps=1e-3)
    assert run().exit_code == 1


def test_a_target_that_fails_is_left_out() -> None:
    targets = [write_target("a"), write_target("b", model_type="no-such-type")]
    result = run("--init", *targets, "-o", "normscope.toml")
    assert result.exit_code == 3
    assert "no-such-type" in result.stderr
    assert run().exit_code == 0
    assert "checkpoints/b" not in Path("normscope.toml").read_text()


def test_a_policy_that_is_replaced_is_told() -> None:
    target = write_target("a")
    assert run("--init", target, "-o", "normscope.toml").stderr == ""
    told = run("--init", target, "-o", "normscope.toml")
    assert (told.exit_code, told.stderr) == (0, "replaced normscope.toml, which was there before\n")
    assert run("--init", target, "-o", "normscope.toml", "-q").stderr == ""


@pytest.mark.parametrize("output", ["normscope.toml", "-"])
def test_where_every_target_fails_nothing_is_written(output: str) -> None:
    Path("normscope.toml").write_text("# mine")
    result = run("--init", write_target("a", model_type="no-such-type"), "-o", output)
    assert (result.exit_code, result.stdout) == (3, "")
    assert "replaced" not in result.stderr
    assert Path("normscope.toml").read_text() == "# mine"


@pytest.mark.parametrize("output", ["pyproject.toml", "checkpoints/a/config.json"])
def test_what_it_does_not_write_over(output: str) -> None:
    target = write_target("a")
    Path("pyproject.toml").write_text("# mine")
    before = Path(output).read_text()
    result = run("--init", f"{target}/config.json", "-o", output)
    assert result.exit_code == 2
    assert output in result.stderr
    assert Path(output).read_text() == before


@pytest.mark.parametrize(
    "option",
    [
        ("--format", "json"),
        ("--policy", "p.toml"),
        ("--lock", "x.lock"),
        ("--baseline", "k.json"),
        ("--shard", "1/2"),
        ("--select", "NS1"),
    ],
)
def test_options_without_a_part_in_it_are_refused(option: tuple[str, str]) -> None:
    result = run("--init", write_target("a"), *option)
    assert result.exit_code == 2
    assert option[0] in result.stderr
