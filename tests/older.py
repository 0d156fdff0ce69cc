"""What older transformers lacks of what the tests name, in one place.

A test whose parameter `model_type` or `name` is a type that the installed version does not have, or
cannot run by its own fault, is not collected there; nor are the tests in `NEEDS`. On the newest
version that the labels were read from, everything is collected: `test_corpus.py` checks both.
"""

import json
from pathlib import Path

from normscope.versions import versions

READ_FROM = (5, 24)
"""The version of transformers whose forward() the labels were read from."""
INSTALLED = tuple(int(part) for part in versions()["transformers"].split(".")[:2])
IS_OLDER = INSTALLED < READ_FROM
TORCH = tuple(int(part) for part in versions()["torch"].split(".")[:2])
TORCH_IS_OLDER = TORCH < (2, 13)
_FOUND = json.loads((Path(__file__).parent / "corpus" / "older.json").read_text("utf-8"))

LISTS: dict[str, dict[str, str]] = _FOUND["lists"]
"""Type -> list of blocks as 5.24 calls it -> as an older version does."""
CANNOT_RUN: dict[str, str] = _FOUND["cannot_run"]
"""Type -> why an older version does not run it with its default config."""

NEEDS: dict[str, str] = {
    "test_groups_that_the_norm_joins_are_rows": "Mamba2's norm has no groups in 4.56",
    "test_a_family_agrees_with_its_numbers[mixtral]": "4.56 loops over the experts that got tokens",
}
"""Part of a test's id -> what it needs that an older version does not have."""


NEEDS_TORCH: dict[str, str] = {
    "[qwen4_exp]": "it gathers by int32 indices, which torch 2.6 refuses",
    "[qwen4_exp_text]": "it gathers by int32 indices, which torch 2.6 refuses",
}
"""The same for an older torch."""


def is_collected(test: str, model_type: object = None) -> bool:
    """Tell whether the installed version can run a test, given its id and the type it is about."""
    if TORCH_IS_OLDER and any(part in test for part in NEEDS_TORCH):
        return False
    if not IS_OLDER:
        return True
    from normscope.model import known_model_types  # imports transformers

    exists = model_type not in _TYPES or model_type in known_model_types()
    return exists and model_type not in CANNOT_RUN and not any(part in test for part in NEEDS)


_LABELS = (Path(__file__).parent / "corpus" / "placements.json").read_text("utf-8")
_TYPES = {*json.loads(_LABELS), *_FOUND["newer"]}
