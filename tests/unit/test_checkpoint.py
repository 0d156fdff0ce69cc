"""Targets and what they resolve to; nothing here may reach a network."""

import json
import socket
from unittest.mock import MagicMock

import pytest

from normscope.checkpoint import CheckpointKind, resolve_checkpoint
from normscope.errors import FailureKind, NormscopeError, UsageError


def write_config(folder, content, name="config.json"):
    folder.mkdir(parents=True, exist_ok=True)
    text = content if isinstance(content, str) else json.dumps(content)
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def failure(target, **options):
    with pytest.raises(NormscopeError) as caught:
        resolve_checkpoint(target, **options)
    return caught.value


@pytest.fixture(autouse=True)
def _no_network(monkeypatch):
    def refuse(*_args, **_options):
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)


def test_a_directory_and_its_config_file_hold_the_same_checkpoint(tmp_path):
    path = write_config(tmp_path, {"model_type": "bert", "architectures": ["BertForMaskedLM"]})
    directory, file = resolve_checkpoint(str(tmp_path)), resolve_checkpoint(str(path))
    assert (directory.kind, file.kind) == (CheckpointKind.DIRECTORY, CheckpointKind.CONFIG_FILE)
    assert directory.model_type == file.model_type == "bert"
    assert directory.config == file.config
    assert directory.directory == file.directory == tmp_path
    assert directory.architectures == ("BertForMaskedLM",)


def test_a_type_names_its_model_type_and_nothing_else():
    found = resolve_checkpoint("type:bert")
    assert (found.kind, found.model_type) == (CheckpointKind.TYPE, "bert")
    assert found.config is None
    assert found.directory is None


def test_a_demo_lies_in_the_package():
    found = resolve_checkpoint("demo:post-norm")
    assert found.kind is CheckpointKind.DEMO
    assert found.directory is not None
    assert (found.directory / "config.json").is_file()


def test_a_python_target_keeps_its_factory():
    found = resolve_checkpoint("py:package.module:factory")
    assert (found.kind, found.factory) == (CheckpointKind.PYTHON, "package.module:factory")


@pytest.mark.parametrize("target", ["", "  ", "py:module", "py::factory"])
def test_a_target_that_can_mean_nothing_is_a_usage_error(target):
    with pytest.raises(UsageError):
        resolve_checkpoint(target)


def test_an_unknown_demo_is_not_found():
    assert failure("demo:mid-norm").kind is FailureKind.NOT_FOUND


@pytest.mark.parametrize("target", ["nothing-here", "./nothing/here", "/nothing/here", "a/b/c"])
def test_a_missing_path_is_not_found(target, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert failure(target).kind is FailureKind.NOT_FOUND


def test_a_missing_folder_inside_one_that_exists_is_no_repository(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").mkdir()
    error = failure("runs/last")
    assert error.kind is FailureKind.NOT_FOUND
    assert "runs/last@main" in error.hint


def test_a_glob_that_nobody_expands_is_told_where_globs_work(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "c").mkdir()
    assert failure("c/*").hint.startswith("globs work in the targets of a policy")


def test_a_directory_without_config(tmp_path):
    assert failure(str(tmp_path)).kind is FailureKind.NO_CONFIG


def test_an_adapter_names_the_model_it_belongs_to(tmp_path):
    write_config(tmp_path, {"base_model_name_or_path": "org/base"}, "adapter_config.json")
    error = failure(str(tmp_path))
    assert error.kind is FailureKind.ADAPTER_ONLY
    assert "org/base" in error.message
    assert error.hint == "normscope inspect org/base"


def test_an_adapter_beside_a_whole_model_does_not_hide_it(tmp_path):
    write_config(tmp_path, {"base_model_name_or_path": "org/base"}, "adapter_config.json")
    write_config(tmp_path, {"model_type": "bert"})
    assert resolve_checkpoint(str(tmp_path)).model_type == "bert"


@pytest.mark.parametrize("content", ["{", "", "[1]", '"bert"', "{'model_type': 'bert'}"])
def test_a_broken_config_is_corrupt(content, tmp_path):
    write_config(tmp_path, content)
    assert failure(str(tmp_path)).kind is FailureKind.CORRUPT


def test_a_config_that_is_not_text_is_corrupt(tmp_path):
    (tmp_path / "config.json").write_bytes(b"\xff\xfe\x00")
    assert failure(str(tmp_path)).kind is FailureKind.CORRUPT


@pytest.mark.parametrize("content", [{}, {"hidden_size": 8}, {"model_type": None}])
def test_a_config_that_names_no_model(content, tmp_path):
    write_config(tmp_path, content)
    assert failure(str(tmp_path)).kind is FailureKind.UNKNOWN_ARCHITECTURE


def test_architectures_alone_are_enough(tmp_path):
    write_config(tmp_path, {"architectures": ["BertModel"]})
    assert resolve_checkpoint(str(tmp_path)).architectures == ("BertModel",)


def test_a_gguf_file_is_a_checkpoint_of_its_own(tmp_path):
    path = tmp_path / "model.GGUF"
    path.write_bytes(b"GGUF")
    checkpoint = resolve_checkpoint(str(path))
    assert (checkpoint.kind, checkpoint.weights_file) == (CheckpointKind.GGUF, path)


# The Hub, by what huggingface_hub would answer.


@pytest.mark.parametrize("target", ["org/name", "org/name@v1"])
def test_offline_a_repository_that_is_not_cached_is_refused(target, monkeypatch):
    import huggingface_hub

    monkeypatch.setattr(huggingface_hub, "try_to_load_from_cache", lambda *_a, **_k: None)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    assert failure(target, offline=True).kind is FailureKind.OFFLINE


def test_the_environment_can_forbid_the_network(monkeypatch):
    import huggingface_hub

    monkeypatch.setattr(huggingface_hub, "try_to_load_from_cache", lambda *_a, **_k: None)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    assert failure("org/name").kind is FailureKind.OFFLINE


def test_a_cached_repository_needs_no_network(tmp_path, monkeypatch):
    import huggingface_hub

    path = write_config(tmp_path, {"model_type": "bert"})
    asked = []

    def cached(repository, name, revision=None):
        asked.append((repository, name, revision))
        return str(path)

    monkeypatch.setattr(huggingface_hub, "try_to_load_from_cache", cached)
    found = resolve_checkpoint("org/name@v1", revision="ignored", offline=True)
    assert (found.kind, found.repository, found.revision) == (CheckpointKind.HUB, "org/name", "v1")
    assert asked == [("org/name", "config.json", "v1")]


def hub_error(name):
    from huggingface_hub import errors

    # The response is of another HTTP client in each major version of huggingface_hub.
    # `RemoteEntryNotFoundError` is the base class itself before huggingface_hub 1.
    return getattr(errors, name, errors.EntryNotFoundError)("refused", response=MagicMock())


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("GatedRepoError", FailureKind.GATED),
        ("RepositoryNotFoundError", FailureKind.NOT_FOUND),
        ("RevisionNotFoundError", FailureKind.NOT_FOUND),
        ("HfHubHTTPError", FailureKind.OFFLINE),
        ("RemoteEntryNotFoundError", FailureKind.NO_CONFIG),
    ],
)
def test_each_answer_of_the_hub_has_its_own_kind(name, kind, monkeypatch):
    import huggingface_hub

    def refuse(*_args, **_options):
        raise hub_error(name)

    monkeypatch.setattr(huggingface_hub, "try_to_load_from_cache", lambda *_a, **_k: None)
    monkeypatch.setattr(huggingface_hub, "hf_hub_download", refuse)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    assert failure("org/name").kind is kind


def test_a_repository_with_an_adapter_alone(tmp_path, monkeypatch):
    import huggingface_hub

    path = write_config(tmp_path, {"base_model_name_or_path": "org/base"}, "adapter_config.json")
    missing = object()

    def cached(_repository, name, revision=None):
        del revision
        return str(path) if name == "adapter_config.json" else missing

    monkeypatch.setattr(huggingface_hub, "try_to_load_from_cache", cached)
    assert failure("org/name").kind is FailureKind.ADAPTER_ONLY
