"""Checkpoint -> where its tensors can be got at."""

from pathlib import Path

from normscope.checkpoint import Checkpoint, CheckpointKind
from normscope.hub import Repository
from normscope.weights.files import find_pickled_files, find_weight_files, refuse_shards_alone
from normscope.weights.pickled_folder import PickledFolder
from normscope.weights.safetensors_folder import SafetensorsFolder
from normscope.weights.stored import TensorSource


def open_source(
    checkpoint: Checkpoint, *, pickled: bool = False, remote: bool = False
) -> TensorSource | None:
    """Return the checkpoint's tensors, or None where there are none.

    Pickled files are only opened with `pickled`: even a careful loader reads a stranger's program.
    The Hub is only asked with `remote`.
    Raises `NormscopeError` of kind `corrupt` for an index that cannot be right and for shards
    without one, and `missing_dependency` for a GGUF file without the package gguf.
    """
    if checkpoint.repository is not None:
        return _remote(checkpoint) if remote else None
    if checkpoint.weights_file is not None:
        return _gguf(checkpoint.target, checkpoint.weights_file)
    directory = checkpoint.directory
    if directory is None or checkpoint.kind is CheckpointKind.CONFIG_FILE:
        return None  # a config.json is the config alone
    files = find_weight_files(checkpoint.target, directory)
    if files.paths:
        return SafetensorsFolder(checkpoint.target, files)
    files = find_pickled_files(checkpoint.target, directory)
    if not files.paths and not (checkpoint.config or {}).get("transformers_weights"):
        refuse_shards_alone(checkpoint.target, directory)
    return PickledFolder(checkpoint.target, files) if pickled and files.paths else None


def _gguf(target: str, path: Path) -> TensorSource:
    from normscope.weights.gguf_file import GgufFile

    return GgufFile(target, path)


def _remote(checkpoint: Checkpoint) -> TensorSource | None:
    from normscope.weights.hub_repository import open_repository

    return open_repository(
        Repository(
            target=checkpoint.target,
            name=checkpoint.repository or "",
            revision=checkpoint.commit or checkpoint.revision,
            offline=checkpoint.offline,
        )
    )
