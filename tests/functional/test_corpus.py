"""Real families at their default size: placements that were read from each forward() by people.

`corpus/placements.json` holds, for each model type, the stacks with the placement of every branch
in the order in which they run; a list of two is a label and what the stream's view makes of it.
"""

import gc
import json
from collections import Counter
from pathlib import Path

import pytest

from normscope import inspect_checkpoint
from normscope.inspection import Inspection
from older import CANNOT_RUN, IS_OLDER, LISTS, is_collected

LABELS = json.loads(
    (Path(__file__).parent.parent / "corpus" / "placements.json").read_text(encoding="utf-8")
)


@pytest.mark.parametrize("model_type", LABELS)
def test_every_branch_of_every_block(model_type: str) -> None:
    report = inspect_checkpoint(f"type:{model_type}")
    assert isinstance(report, Inspection), report
    found = {
        (block.stack, block.index): [branch.placement.value for branch in block.branches]
        for block in report.blocks
    }
    for stack in LABELS[model_type]:
        place = stack["path"]
        if IS_OLDER:
            place = LISTS.get(model_type, {}).get(place, place)
        of_stack = {index: names for (path, index), names in found.items() if path == place}
        indices = stack.get("indices", sorted(of_stack))
        assert len(indices) == stack["blocks"]
        for index in indices:
            assert agree(of_stack[index], stack["placements"]), (stack["path"], index)
    gc.collect()


def agree(found: list[str], labels: list[str | list[str]]) -> bool:
    return len(found) == len(labels) and all(
        name == label or name in label for name, label in zip(found, labels, strict=True)
    )


def test_an_older_transformers_has_most_of_the_types() -> None:
    collected = [name for name in LABELS if is_collected("", name)]
    assert len(collected) >= (140 if IS_OLDER else len(LABELS))
    assert len(CANNOT_RUN) < 10
    assert LISTS.keys() <= LABELS.keys()


def test_the_labels_are_many_and_differ() -> None:
    names = Counter(
        name
        for stacks in LABELS.values()
        for stack in stacks
        for label in stack["placements"]
        for name in ([label] if isinstance(label, str) else label)
    )
    assert len(LABELS) > 150
    assert min(names[name] for name in ("pre-norm", "post-norm", "res-post-norm")) >= 5
    assert not agree(["pre-norm"], ["post-norm"])
    assert not agree(["pre-norm"], ["pre-norm", "pre-norm"])
