"""The structure of a model without weights: normscope beside TorchLens and nnsight.

    python -m venv bench && bench/bin/pip install normscope torchlens nnsight
    bench/bin/python tests/benchmarks/structure_tools.py [--models bert gpt2] [--rounds 3]

Each tool gets the same module on `meta` and the same tokens, in one process and in turn. Printed
are the median time of each, as a ratio to normscope's trace, with the least and the greatest of the
rounds, and what it found; where a tool refuses, the first line of its error. A tool that cannot be
imported is left out. The tools do not do the same: TorchLens' structure-only capture records
operations, as normscope's trace does; nnsight's scan runs the model on fake tensors, and gives the
shapes at the modules that are asked for (since 0.8 only of models that it loads itself from a
repository: its wrapper of a live module has no scan, and is shown as refusing); normscope's
analysis, which the others do not have, is listed by itself, and so is building the module. Nothing
is asserted.
"""

import argparse
import statistics
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

import torch
import transformers
from torch import nn

from normscope import inspect_module
from normscope.checkpoint import resolve_checkpoint
from normscope.graph import Graph
from normscope.model import build_on_meta
from normscope.pipeline import placed_root
from normscope.tracing import trace_module

CLASSES: dict[str, Callable[[], nn.Module]] = {
    "bert": lambda: transformers.BertModel(transformers.BertConfig()),
    "gpt2": lambda: transformers.GPT2Model(transformers.GPT2Config()),
}
LAYERS: dict[str, Callable[[Any], Any]] = {
    "bert": lambda model: model.encoder.layer[-1].output,
    "gpt2": lambda model: model.h[-1].output,
}


@dataclass(slots=True)
class Tool:
    """What is run, what its runs took, and what came of it."""

    name: str
    run: Callable[[], str]
    seconds: list[float] = field(default_factory=list)
    found: str = ""
    refused: str = ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="+", choices=CLASSES, default=list(CLASSES))
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in arguments.models:
        tools = tools_for(name)
        for tool in tools:
            run(tool)
            tool.seconds.clear()  # the first run imports and fills caches
        for _ in range(arguments.rounds):
            for tool in tools:
                run(tool)
        report(name, tools)
    for package in ("torchlens", "nnsight"):
        if find_spec(package) is None:
            print(f"{package} is not installed and was left out: pip install {package}")


def tools_for(name: str) -> list[Tool]:
    with torch.device("meta"):
        module = CLASSES[name]().eval()
    graph = trace_module(module, tokens("cpu"))
    tools = [
        Tool("normscope: trace", lambda: operations(trace_module(module, tokens("cpu")))),
        Tool("normscope: analysis", lambda: f"{len(placed_root('', graph).placed.blocks)} blocks"),
        Tool("normscope: both", lambda: inspect_module(module, tokens("cpu")).placement.value),
        Tool("normscope: build", lambda: built(name)),
    ]
    if find_spec("torchlens") is not None:
        tools.append(Tool("torchlens: structure only", lambda: torchlens_found(module)))
    if find_spec("nnsight") is not None:
        tools.append(Tool("nnsight: scan", lambda: nnsight_found(name, module)))
    return tools


def tokens(device: str) -> dict[str, torch.Tensor]:
    return {"input_ids": torch.ones(2, 8, dtype=torch.long, device=device)}


def operations(graph: Graph) -> str:
    return f"{len(graph.nodes)} values in {len(graph.calls)} module calls"


def built(name: str) -> str:
    model = build_on_meta(resolve_checkpoint(f"type:{name}"))
    return f"{model.parameters} parameters"


def torchlens_found(module: nn.Module) -> str:
    import torchlens
    from torchlens.options import CaptureOptions

    capture = CaptureOptions(structure_only=True)
    found = torchlens.trace(module, input_kwargs=tokens("meta"), capture=capture)
    return f"{len(found.layers)} layers"


def nnsight_found(name: str, module: nn.Module) -> str:
    import nnsight

    model = nnsight.NNsight(module)
    with model.scan(**tokens("cpu")):
        output = LAYERS[name](model)
        shape = nnsight.save(tuple((output[0] if isinstance(output, tuple) else output).shape))
    return f"shape of the last block's output {shape}"


def run(tool: Tool) -> None:
    if tool.refused:
        return
    began = time.perf_counter()
    try:
        tool.found = tool.run()
    except Exception as error:  # noqa: BLE001 - what refuses is part of the answer
        tool.refused = f"{type(error).__name__}: {first_line(error)}"
    tool.seconds.append(time.perf_counter() - began)


def first_line(error: Exception) -> str:
    """Return the line of an error that says what happened; nnsight puts a traceback before it."""
    lines = [line for line in str(error).strip().splitlines() if line.strip()]
    if not lines:
        return "no message"
    return (lines[-1] if lines[0].startswith("Traceback") else lines[0]).strip()


def report(name: str, tools: list[Tool]) -> None:
    print(f"{name} on meta, 2x8 tokens; ratio to normscope's trace: median (least-greatest)")
    ours = tools[0].seconds
    for tool in tools:
        if tool.refused:
            print(f"  {tool.name:26} refused: {tool.refused[:200]}")
            continue
        ratios = [theirs / own for theirs, own in zip(tool.seconds, ours, strict=True)]
        spread = f"{statistics.median(ratios):8.2f} ({min(ratios):.2f}-{max(ratios):.2f})"
        print(f"  {tool.name:26}{spread:28} {tool.found}")


if __name__ == "__main__":
    main()
