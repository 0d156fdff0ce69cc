"""Time of a measured forward pass beside the plain one, interleaved in one process.

    python tests/benchmarks/stats_overhead.py [--model gpt2|bert] [--batch 1] [--dtype float32]

Prints the ratio of the medians, of wall time and of processor time; the share of a measured forward
that is spent inside the hooks, which a busy machine disturbs less; and the cost per value and token
beside the time of one read of the same activations. It asserts nothing: machines differ.
"""

import argparse
import statistics
import time
from collections.abc import Callable

import torch
import transformers
from torch import nn

from normscope.activations.plan import plan_measurement
from normscope.activations.probes import Readings, probing
from normscope.activations.streams import Inputs

MODELS: dict[str, Callable[[], nn.Module]] = {
    "gpt2": lambda: transformers.GPT2Model(transformers.GPT2Config()),
    "bert": lambda: transformers.BertModel(transformers.BertConfig()),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", choices=MODELS, default="gpt2")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--tokens", type=int, default=512)
    parser.add_argument("--dtype", choices=["float32", "bfloat16"], default="float32")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=None)
    arguments = parser.parse_args()
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    torch.manual_seed(0)
    model = MODELS[arguments.model]().eval().to(getattr(torch, arguments.dtype))
    ids = torch.randint(0, 20000, (arguments.batch, arguments.tokens))
    compare(model, Inputs(keywords={"input_ids": ids}), arguments)


def compare(model: nn.Module, inputs: Inputs, arguments: argparse.Namespace) -> None:
    readings = plan_measurement(model, inputs).readings

    def plain() -> None:
        model(**inputs.keywords)

    def measured() -> None:
        with probing(model, readings):
            model(**inputs.keywords)

    with torch.no_grad():
        plain()
        measured()
        wall, processor = interleaved((plain, measured), arguments.rounds)
        inside = share_inside(measured, min(arguments.rounds, 7))
    read = one_read(arguments.batch * arguments.tokens, model.config.hidden_size, model.dtype)
    shape = f"{arguments.batch}x{arguments.tokens} tokens {arguments.dtype}"
    print(f"{arguments.model} {shape}, {len(readings)} values read, {arguments.rounds} rounds")
    print(f"  plain     {1e3 * statistics.median(wall[0]):9.1f} ms")
    print(f"  measured  {1e3 * statistics.median(wall[1]):9.1f} ms")
    for name, (first, second) in (("wall", wall), ("processor", processor)):
        ratios = sorted(b / a for a, b in zip(first, second, strict=True))
        middle = statistics.median(second) / statistics.median(first)
        print(
            f"  {name:9} ratio of medians {middle:.3f}, least of each "
            f"{min(second) / min(first):.3f}, pairs {ratios[len(ratios) // 4]:.3f} to "
            f"{ratios[3 * len(ratios) // 4]:.3f}"
        )
    print(f"  inside the hooks {inside:.2%} of the rest of the forward")
    values = len(readings) * arguments.batch * arguments.tokens
    cost = statistics.median(second - first for first, second in zip(*wall, strict=True)) / values
    print(
        f"  cost per value read and token {1e9 * cost:.0f} ns, one read of it {1e9 * read:.0f} ns"
    )


def interleaved(
    runs: tuple[Callable[[], None], ...], rounds: int
) -> tuple[list[list[float]], list[list[float]]]:
    """Return wall and processor times, by run."""
    wall: list[list[float]] = [[] for _ in runs]
    processor: list[list[float]] = [[] for _ in runs]
    for turn in range(rounds):
        # Whoever comes second finds warmer caches: take turns.
        order = range(len(runs)) if turn % 2 else reversed(range(len(runs)))
        for index in order:
            started, worked = time.perf_counter(), time.process_time()
            runs[index]()
            wall[index].append(time.perf_counter() - started)
            processor[index].append(time.process_time() - worked)
    return wall, processor


def share_inside(measured: Callable[[], None], rounds: int) -> float:
    """Return the time in the hooks over the time outside them, in the same forward passes."""
    inside = 0.0
    take = Readings.take

    def timed(self: Readings, index: int, value: torch.Tensor) -> None:
        nonlocal inside
        started = time.perf_counter()
        take(self, index, value)
        inside += time.perf_counter() - started

    shares = []
    Readings.take = timed  # type: ignore[method-assign]
    try:
        for _ in range(rounds):
            inside, started = 0.0, time.perf_counter()
            measured()
            shares.append(inside / (time.perf_counter() - started - inside))
    finally:
        Readings.take = take  # type: ignore[method-assign]
    return statistics.median(shares)


def one_read(rows: int, width: int, dtype: torch.dtype) -> float:
    """Return the time of one pass over an activation, by row."""
    value = torch.randn(rows, width).to(dtype)
    times = []
    for _ in range(50):
        started = time.perf_counter()
        value.sum(-1)
        times.append(time.perf_counter() - started)
    return statistics.median(times) / rows


if __name__ == "__main__":
    main()
