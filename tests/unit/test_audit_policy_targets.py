"""What the targets of a policy name: paths, globs, and names that are no paths."""

import os
from pathlib import Path

import pytest

from normscope.audit.globs import expanded, matches
from normscope.audit.policy import Place, TargetPattern
from normscope.audit.policy_targets import covered, found_targets, typed_paths
from normscope.errors import UsageError

PLACE = Place(file="normscope.toml", line=7)


def checkpoint(folder: Path, path: str, name: str = "config.json") -> None:
    (folder / path).mkdir(parents=True, exist_ok=True)
    (folder / path / name).write_text("{}")


@pytest.fixture
def models(tmp_path: Path) -> Path:
    for name in ("b", "a", "c/deep", ".hidden"):
        checkpoint(tmp_path, f"models/{name}")
    checkpoint(tmp_path, "models/adapter", "adapter_config.json")
    (tmp_path / "models/x.gguf").write_text("")
    (tmp_path / "models/README.md").write_text("")
    (tmp_path / "models/tiny.json").write_text("{}")
    return tmp_path


def names(pattern: str, folder: Path) -> list[str]:
    return [each.target for each in found_targets(written(pattern), folder)]


def written(pattern: str) -> TargetPattern:
    return TargetPattern(text=pattern, place=PLACE)


def refusal(pattern: str, folder: Path) -> UsageError:
    with pytest.raises(UsageError) as caught:
        found_targets(written(pattern), folder)
    return caught.value


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("models/*", ["models/a", "models/adapter", "models/b", "models/x.gguf"]),
        ("./models/*/", ["models/a", "models/adapter", "models/b", "models/x.gguf"]),
        ("models/?", ["models/a", "models/b"]),
        ("models/[!a]", ["models/b"]),
        ("models/*/deep", ["models/c/deep"]),
        ("*/*/*", ["models/c/deep"]),
        ("models/.*", ["models/.hidden"]),
        ("models/*.json", ["models/tiny.json"]),
        ("models/*/config.json", ["models/a/config.json", "models/b/config.json"]),
        ("models/c/**", ["models/c/deep"]),
        ("models/**/deep", ["models/c/deep"]),
        ("**/*.gguf", ["models/x.gguf"]),
        ("models/a/../?", ["models/a/../a", "models/a/../b"]),
    ],
)
def test_a_glob_finds_checkpoints_in_order(models, pattern, found):
    assert names(pattern, models) == found
    assert all(matches(name, pattern) for name in found)


def test_every_depth_once(models):
    found = names("**/**", models)
    assert found == sorted(set(found))
    assert "models/c/deep" in found
    assert "models/.hidden" not in found


def test_a_glob_from_the_root_finds_whole_paths(models):
    root = models.as_posix()
    (found,) = found_targets(written(f"{root}/models/c/*"), Path("elsewhere"))
    assert found.target == found.opened == f"{root}/models/c/deep"


def test_a_glob_from_the_home_folder_stays_what_it_is_on_every_machine(models, monkeypatch):
    monkeypatch.setenv("HOME", str(models))
    (found,) = found_targets(written("~/models/c/*"), Path("elsewhere"))
    assert (found.target, found.opened) == ("~/models/c/deep", f"{models.as_posix()}/models/c/deep")


def test_what_is_opened_is_seen_from_here(models, monkeypatch):
    monkeypatch.chdir(models / "models")
    (found,) = found_targets(written("models/c/*"), Path(".."))
    assert (found.target, found.opened) == ("models/c/deep", "../models/c/deep")


def test_a_name_with_signs_of_a_glob_is_a_path_where_it_exists(models):
    checkpoint(models, "models/[a]")
    assert names("./models/[a]", models) == ["models/[a]"]


def test_links_are_found_and_not_gone_down_for_any_depth(models):
    (models / "models/c/up").symlink_to(models, target_is_directory=True)
    checkpoint(models, "models/c/more")
    (models / "models/c/link").symlink_to(models / "models/a", target_is_directory=True)
    assert names("models/c/*", models) == ["models/c/deep", "models/c/link", "models/c/more"]
    assert names("models/c/**", models) == ["models/c/deep", "models/c/more"]


class TestNothing:
    def test_nothing_like_it(self, models):
        error = refusal("models/zz*", models)
        assert error.message == 'normscope.toml:7: "models/zz*" matches nothing'
        assert error.hint.endswith("/models holds nothing like it")

    def test_the_folder_is_called_otherwise(self, models):
        error = refusal("./model/*", models)
        assert error.message == 'normscope.toml:7: "./model/*" matches nothing'
        assert "there is no `model` in " in error.hint
        assert error.hint.endswith("did you mean `models`?")

    def test_a_folder_that_a_glob_nearly_matches(self, models):
        (models / "models/llama").mkdir()
        error = refusal("models/lama*", models)
        assert error.hint.endswith("/models holds nothing like it; did you mean `llama`?")

    def test_no_checkpoint_among_what_matches(self, models):
        error = refusal("models/*.md", models)
        assert error.message.endswith('"models/*.md" matches 1 path, and no checkpoint')
        assert "config.json" in error.hint
        assert "matches 2 paths" in refusal("models/[ct]*", models).message

    def test_a_folder_that_may_not_be_read(self, models, monkeypatch):
        closed, scandir = models / "models/c", os.scandir

        def refuse(path):
            if Path(path) == closed:
                raise PermissionError(13, "Permission denied", str(path))
            return scandir(path)

        monkeypatch.setattr(os, "scandir", refuse)
        error = refusal("models/*/*", models)
        assert error.message.startswith('normscope.toml:7: "models/*/*" leads into a folder that')
        assert error.message.endswith("/models/c")
        assert names("models/?", models) == ["models/a", "models/b"]

    @pytest.mark.parametrize("pattern", ["a\0/*", "~nobody-at-all/*", "x" * 5000 + "/*"])
    def test_what_is_no_path(self, models, pattern):
        assert "is no path" in refusal(pattern, models).message


class TestNoGlobs:
    @pytest.mark.parametrize("name", ["type:bert", "demo:pre-norm", "py:a.b:c", "org/name@v1"])
    def test_a_name_is_opened_as_it_is(self, tmp_path, name):
        (found,) = found_targets(written(name), tmp_path)
        assert (found.target, found.opened, found.place) == (name, name, PLACE)

    @pytest.mark.parametrize("name", ["./org/name", "../x", "a/b/c", "x.gguf", "tiny.json"])
    def test_a_path_that_is_not_there_is_no_repository(self, tmp_path, name):
        (found,) = found_targets(written(name), tmp_path)
        assert (found.target, found.opened) == (name, (tmp_path / name).as_posix())

    def test_even_beside_the_policy(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        (found,) = found_targets(written("./org/name"), Path())
        assert found.opened == "./org/name"

    def test_a_folder_is_before_a_repository(self, models):
        (found,) = found_targets(written("models/a/"), models)
        assert (found.target, found.opened) == ("models/a", f"{models.as_posix()}/models/a")

    def test_a_folder_that_lies_elsewhere_is_not_taken_for_it(self, models, monkeypatch):
        monkeypatch.chdir(models)
        error = refusal("models/a", Path("models/b"))
        assert "is a folder where this runs, and none beside the policy" in error.message
        assert "models/a@main" in error.hint


@pytest.mark.parametrize(
    ("pattern", "name", "whether"),
    [
        ("type:bert", "type:bert", True),
        ("type:bert", "type:bert-2", False),
        ("type:*", "type:bert", True),
        ("./a/b/", "a/b", True),
        ("./not/there", "./not/there", True),
        ("./a/*", "a/b", True),
        ("a/*", "a/b/c", False),
        ("a/**", "a/b/c", True),
        ("a/**", "a", True),
        ("a/**/c", "a/c", True),
        ("a/*", "a/.b", False),
        ("**/c", "a/.b/c", False),
        ("org/*", "org/name", True),
    ],
)
def test_a_pattern_covers_names(pattern, name, whether):
    assert covered(pattern, ["other", name]) == (name if whether else None)


class TestTypedPaths:
    def test_names_that_a_policy_could_have(self, models, monkeypatch):
        monkeypatch.chdir(models / "models")
        found = dict(typed_paths("./a/", models))
        assert found["models/a"] == "a"
        assert found[(models / "models/a").as_posix()] == "a"

    def test_a_config_is_its_folder_too(self, models, monkeypatch):
        monkeypatch.chdir(models)
        found = dict(typed_paths("models/a/config.json", Path()))
        assert found["models/a"] == "models/a"
        assert found["models/a/config.json"] == "models/a/config.json"

    @pytest.mark.parametrize("typed", ["type:bert", "org/name", "a\0b", "~nobody-at-all/x"])
    def test_no_path(self, models, typed):
        assert typed_paths(typed, models) == ()


def test_what_is_no_checkpoint_is_counted(models):
    found = expanded("models/*", models)
    assert found.others == 3  # c, README.md and tiny.json
