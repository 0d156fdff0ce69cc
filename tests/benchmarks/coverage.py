"""Every model type that transformers knows, inspected one by one; and its classes with heads.

    python tests/benchmarks/coverage.py [--heads] [--jobs 2] [TYPE ...] > answers.jsonl

One JSON object a class goes to stdout: how it was answered, how much of it ran, how long it took,
and with `--heads` where the blocks under the head differ from those of the bare model. A count per
kind of answer goes to stderr. Install the extras `vision` and `audio` first to have the types that
need timm or torchaudio among them. A whole run takes a quarter of an hour, with heads an hour.
"""

import argparse
import json
import multiprocessing
import resource
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from multiprocessing.pool import Pool
from pathlib import Path
from typing import Any

import torch
from transformers.models.auto import modeling_auto
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from normscope import inspect_checkpoint
from normscope.inspection import Inspection
from normscope.model.defaults import fill_in

FILLED = Path(__file__).parent.parent / "corpus" / "filled.json"
"""Configs for the types whose default one does not build."""
Blocks = dict[str, list[str]]


def main() -> None:
    options = _options()
    torch.set_num_threads(1)
    counts: Counter[str] = Counter()
    with Pool(
        options.jobs, maxtasksperchild=1, context=multiprocessing.get_context("fork")
    ) as pool:
        work = _with_heads if options.heads else _bare
        for answers in pool.imap_unordered(work, options.types or known_types()):
            for answer in answers:
                counts[answer["kind"]] += 1
                print(json.dumps(answer, sort_keys=True), flush=True)
    print(dict(counts), file=sys.stderr)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("types", nargs="*")
    parser.add_argument("--heads", action="store_true")
    parser.add_argument("--jobs", type=int, default=2)
    return parser.parse_args()


def known_types() -> list[str]:
    return list(modeling_auto.MODEL_MAPPING_NAMES)


def _bare(model_type: str) -> list[dict[str, Any]]:
    answer, _ = _answered(model_type, f"type:{model_type}")
    return [answer]


def _with_heads(model_type: str) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        try:
            config = _config(model_type)
        except Exception as error:  # noqa: BLE001 - transformers may raise anything here
            return [{"type": model_type, "kind": "no default config", "message": str(error)}]
        first, bare = _answered(model_type, _saved(folder, config))
        answers = [first]
        for head in _heads(model_type):
            answer, under = _answered(
                model_type, _saved(folder, {**config, "architectures": [head]})
            )
            answer["head"] = head
            answer["differs"] = _differences(bare, under)
            answers.append(answer)
    return answers


def _config(model_type: str) -> dict[str, Any]:
    """Return what a checkpoint of the default size would have in its config.json."""
    filled = json.loads(FILLED.read_text(encoding="utf-8"))
    if model_type in filled:
        return {k: v for k, v in filled[model_type]["config"].items() if k != "architectures"}
    config = CONFIG_MAPPING[model_type]()
    fill_in(config)
    saved: dict[str, Any] = json.loads(config.to_json_string(use_diff=True))
    return {"model_type": model_type, **saved}


def _saved(folder: Path, config: dict[str, Any]) -> str:
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return str(folder)


def _heads(model_type: str) -> Iterator[str]:
    """Yield the classes that the Auto mappings have for a type, each once."""
    seen = {modeling_auto.MODEL_MAPPING_NAMES.get(model_type)}
    for name, mapping in vars(modeling_auto).items():
        if name.startswith("MODEL_") and name.endswith("_MAPPING_NAMES") and model_type in mapping:
            found = mapping[model_type]
            for head in [found] if isinstance(found, str) else found:
                if head not in seen:
                    seen.add(head)
                    yield head


def _answered(model_type: str, target: str) -> tuple[dict[str, Any], Blocks]:
    began = time.perf_counter()
    report = inspect_checkpoint(target)
    answer: dict[str, Any] = {"type": model_type, "seconds": round(time.perf_counter() - began, 2)}
    answer["megabytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    if not isinstance(report, Inspection):
        return {**answer, "kind": report.kind.value, "message": report.message}, {}
    blocks = {
        block.path: [f"{branch.kind.value}: {branch.formula}" for branch in block.branches]
        for block in report.blocks
        if block.stack is not None
    }
    answer |= {"kind": "inspected", "class": report.model.class_name, "blocks": len(blocks)}
    answer |= {"alone": list(report.towers), "warnings": list(report.warnings)}
    return answer, blocks


def _differences(bare: Blocks, under: Blocks) -> list[str]:
    """Return the blocks of the bare model that the head's lacks or has otherwise."""
    prefixes = {path.removesuffix(one) for one in bare for path in under if path.endswith(one)}
    choices = [
        [f"{path}: {facts}" for path, facts in bare.items() if under.get(prefix + path) != facts]
        for prefix in prefixes
    ]
    return min(choices, key=len, default=list(bare))


if __name__ == "__main__":
    main()
