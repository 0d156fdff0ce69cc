"""Checkpoint + options -> the key of its answer: a digest of all that decides the answer."""

import hashlib
import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from normscope.cache.code import tree_digest
from normscope.cache.steady import looked_up
from normscope.checkpoint import Checkpoint, CheckpointKind
from normscope.versions import versions
from normscope.weights.files import PICKLED, SINGLE

_WEIGHTS = (SINGLE.partition(".")[0], PICKLED.partition(".")[0])
_PACKAGE = Path(__file__).parents[1]


def cache_key(
    checkpoint: Checkpoint,
    *,
    dtype: str | None,
    trust_remote_code: bool,
    verify: bool = False,
    weights: str | None = "none",
    local: str = "headers",
) -> str | None:
    """Return the key of a checkpoint's answer; None where no answer is kept.

    `weights` is None where those that lie here are read, as far as `local` says.
    The target's own words take no part: two copies of one config share an answer. Code of the
    user's or of the checkpoint's can change unseen, so its answers are not kept.
    """
    own_code = trust_remote_code and "auto_map" in (checkpoint.config or {})
    unseen = checkpoint.kind in {CheckpointKind.PYTHON, CheckpointKind.GGUF}
    if unseen or own_code or checkpoint.adapter is not None:
        return None
    facts = {
        "config": checkpoint.config,
        "default": checkpoint.kind is CheckpointKind.TYPE,
        "dtype": dtype,
        "model_type": checkpoint.model_type,
        "surroundings": looked_up("surroundings", _surroundings),
        "verify": verify,
        "weights": (weights or f"local {local}", _stored(checkpoint, weights)),
    }
    return _digest(facts)


def _surroundings() -> str:
    """Return a digest of what decides every answer alike."""
    facts = {
        "packages": sorted(set(_installed())),
        "platform": sys.platform,
        "program": tree_digest(_PACKAGE),
        "python": sys.version,
        "versions": dict(versions()),
    }
    return _digest(facts)


def _digest(facts: Mapping[str, object]) -> str:
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def _stored(checkpoint: Checkpoint, weights: str | None) -> list[object]:
    """Return what an answer about the weights is true of: files here, or a commit of the Hub."""
    if weights == "none" or checkpoint.directory is None:
        return []
    if checkpoint.kind is CheckpointKind.CONFIG_FILE:
        return ["config alone"]
    if checkpoint.repository is not None:
        return [checkpoint.repository, checkpoint.commit] if weights is not None else []
    return [*sorted(_weight_files(checkpoint.directory))]


def _weight_files(directory: Path) -> Iterator[tuple[str, int, int]]:
    """Yield path, size and time of change of each file of weights."""
    with suppress(OSError), os.scandir(directory) as entries:
        for entry in entries:
            if entry.name.startswith(_WEIGHTS):
                facts = entry.stat()
                yield entry.path, facts.st_size, facts.st_mtime_ns


def _installed() -> Iterator[str]:
    """Yield name and version of every installed package: models take other paths with some."""
    for folder in dict.fromkeys(sys.path):
        with suppress(OSError), os.scandir(folder or ".") as entries:
            yield from (e.name for e in entries if e.name.endswith((".dist-info", ".egg-info")))
