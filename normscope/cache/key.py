"""Checkpoint + options -> the key of its answer: a digest of all that decides the answer."""

import hashlib
import json
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from normscope.cache.code import code_digest, package_folders
from normscope.checkpoint import Checkpoint, CheckpointKind
from normscope.versions import versions

_PACKAGE = Path(__file__).parents[1]


def cache_key(checkpoint: Checkpoint, *, dtype: str | None, trust_remote_code: bool) -> str | None:
    """Return the key of a checkpoint's answer; None where no answer is kept.

    The target's own words take no part: two copies of one config share an answer. Code of the
    user's or of the checkpoint's can change unseen, so its answers are not kept.
    """
    own_code = trust_remote_code and "auto_map" in (checkpoint.config or {})
    if checkpoint.kind is CheckpointKind.PYTHON or own_code:
        return None
    facts = {
        "config": checkpoint.config,
        "default": checkpoint.kind is CheckpointKind.TYPE,
        "dtype": dtype,
        "model_type": checkpoint.model_type,
        "packages": sorted(set(_installed())),
        "platform": sys.platform,
        "program": code_digest(package_folders(_PACKAGE)),
        "python": sys.version,
        "versions": dict(versions()),
    }
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def _installed() -> Iterator[str]:
    """Yield name and version of every installed package: models take other paths with some."""
    for folder in dict.fromkeys(sys.path):
        with suppress(OSError), os.scandir(folder or ".") as entries:
            yield from (e.name for e in entries if e.name.endswith((".dist-info", ".egg-info")))
