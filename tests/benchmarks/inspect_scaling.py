"""Growth of tracing and analysis with the number of operations: linear, or not.

    python tests/benchmarks/inspect_scaling.py [--models llama moe dense pyramid anchored]
                                               [--sizes 8 32 128 512] [--rounds 3] [--memory]

Each model is built on `meta` in several sizes. For each size the least processor time of some
rounds is printed, of tracing and of each step of the analysis, as a ratio to that of the first size
divided by the ratio of the operations: 1.00 means linear growth. The rounds go over all sizes in
turn, so that a busy machine disturbs all of them alike. With `--memory`, which is slow, the same
of the memory that Python's objects take at most while tracing, and while analysing. The last line
of `llama` is the promise: the analysis of 512 layers takes at most 20 times that of 32. Nothing is
asserted.

Models: `llama`, a LlamaModel of that many layers; `moe`, two layers with that many experts, each
run by itself; `dense`, a DenseNet: each layer reads all earlier ones; `pyramid`, a U-Net: each
block's output is added to its mirror image's; `anchored`, a stream to which the embedding is
added again in every block.
"""

import argparse
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import torch
import transformers
from torch import nn

from normscope.assembly import PlacedRoot, assemble_inspection
from normscope.cli.collector import collect_now, rare_collections
from normscope.graph import Graph
from normscope.inspection import ModelFacts
from normscope.norms import condense_norms, find_norms
from normscope.placement.place import place_norms
from normscope.residuals import find_stream
from normscope.tracing import trace_module

WIDTH = 16
FACTS = ModelFacts(
    class_name="Model", model_type=None, revision=None, parameters=0, dtype="float32"
)


class Transform(nn.Module):
    """x -> f(N(x))"""

    def __init__(self, width: int = WIDTH) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.linear = nn.Linear(width, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.linear(self.norm(x)))


class Experts(nn.Module):
    """Every expert by itself, its output added to the sum of the others'."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.router = nn.Linear(WIDTH, size)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.SiLU(), nn.Linear(WIDTH, WIDTH))
            for _ in range(size)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n = self.norm(x)
        weights = self.router(n).softmax(-1)
        total = torch.zeros_like(n)
        for index, expert in enumerate(self.experts):
            total = total + weights[..., index, None] * expert(n)
        return x + total


class Dense(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Transform(WIDTH * (index + 1)) for index in range(size))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = torch.cat([x, layer(x)], -1)
        return x


class Pyramid(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.down = nn.ModuleList(Transform() for _ in range(size // 2))
        self.up = nn.ModuleList(Transform() for _ in range(size // 2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kept = []
        for block in self.down:
            x = x + block(x)
            kept.append(x)
        for block in self.up:
            x = block(x) + kept.pop()
        return x


class Anchored(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.embed = nn.Linear(WIDTH, WIDTH)
        self.blocks = nn.ModuleList(Transform() for _ in range(size))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        first = x = self.embed(x)
        for block in self.blocks:
            x = x + block(x)
            x = x + first
        return x


def llama(size: int) -> nn.Module:
    return transformers.LlamaModel(
        transformers.LlamaConfig(
            num_hidden_layers=size,
            hidden_size=WIDTH,
            intermediate_size=WIDTH,
            num_attention_heads=2,
            num_key_value_heads=2,
            vocab_size=32,
        )
    )


MODELS: dict[str, Callable[[int], nn.Module]] = {
    "llama": llama,
    "moe": lambda size: nn.Sequential(Experts(size), Experts(size)),
    "dense": Dense,
    "pyramid": Pyramid,
    "anchored": Anchored,
}


@dataclass(slots=True)
class Subject:
    """One model in one size, and what was measured of it, by step."""

    size: int
    module: nn.Module
    inputs: tuple[Any, ...]
    operations: int = 0
    seconds: dict[str, float] = field(default_factory=dict)
    memory: dict[str, float] = field(default_factory=dict)


STEPS = ("trace", "norms", "stream", "placement", "assembly", "analysis")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--sizes", nargs="+", type=int, default=[8, 32, 128, 512])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--memory", action="store_true")
    arguments = parser.parse_args()
    for name in arguments.models:
        subjects = [subject(name, size) for size in arguments.sizes]
        measure(subjects[0])  # what torch looks up once is no part of the growth
        subjects[0].seconds.clear()
        for _ in range(arguments.rounds):
            for one in subjects:
                measure(one)
        for one in subjects if arguments.memory else []:
            measure_memory(one)
        report(name, subjects)


def subject(name: str, size: int) -> Subject:
    with torch.device("meta"):
        module = MODELS[name](size).eval()
    tokens = torch.ones(2, 8, dtype=torch.long)
    inputs = (tokens,) if name == "llama" else (torch.ones(2, 8, WIDTH),)
    return Subject(size=size, module=module, inputs=inputs)


def measure(one: Subject) -> None:
    collect_now()
    times = [time.process_time()]
    with rare_collections():  # as the command line does
        graph = trace_module(one.module, {}, one.inputs)
        times.append(time.process_time())
        analyse(graph, lambda: times.append(time.process_time()))
    one.operations = len(graph.nodes)
    spent = [after - before for before, after in pairwise(times)]
    for step, seconds in zip(STEPS, [*spent, sum(spent[1:])], strict=True):
        one.seconds[step] = min(seconds, one.seconds.get(step, seconds))


def measure_memory(one: Subject) -> None:
    collect_now()
    tracemalloc.start()
    graph = trace_module(one.module, {}, one.inputs)
    one.memory["trace"] = tracemalloc.get_traced_memory()[1]
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    analyse(graph, lambda: None)
    one.memory["analysis"] = tracemalloc.get_traced_memory()[1] - before
    tracemalloc.stop()


def analyse(graph: Graph, lap: Callable[[], None]) -> None:
    norms = find_norms(graph)
    condensed = condense_norms(graph, norms)
    lap()
    stream = find_stream(condensed)
    lap()
    placed = place_norms(condensed, norms, stream)
    lap()
    root = PlacedRoot(path="", graph=condensed, norms=norms, placed=placed)
    assemble_inspection("model", FACTS, {}, [root])
    lap()


def report(name: str, subjects: list[Subject]) -> None:
    first = subjects[0]
    print(f"{name}: growth beyond that of the operations, 1.00 is linear")
    steps = "".join(f"{step:>10}" for step in STEPS)
    heading = "   memory: trace, analysis" if first.memory else ""
    print(f"  size operations{steps}{heading}")
    for one in subjects:
        more = one.operations / first.operations
        growth = [one.seconds[step] / first.seconds[step] / more for step in STEPS]
        held = [one.memory[step] / first.memory[step] / more for step in one.memory]
        per_node = "".join(f" ({size / one.operations:.0f} B/op)" for size in one.memory.values())
        print(
            f"  {one.size:4} {one.operations:10}"
            + "".join(f"{ratio:10.2f}" for ratio in growth)
            + "   "
            + "".join(f"{ratio:8.2f}" for ratio in held)
            + per_node
        )
    by_size = {one.size: one for one in subjects}
    if {32, 512} <= set(by_size):
        ratio = by_size[512].seconds["analysis"] / by_size[32].seconds["analysis"]
        share = by_size[512].seconds["analysis"] / by_size[512].seconds["trace"]
        print(f"  analysis of 512 is {ratio:.1f} times that of 32, and {share:.2f} of its trace")


if __name__ == "__main__":
    main()
