"""Time and memory of a measured forward pass beside the plain one, interleaved in one process.

    python tests/benchmarks/stats_overhead.py [--model gpt2|bert] [--batch 1] [--dtype float32]

Beside them run hooks as they are usually written (mean and variance in float32), and what is
installed of nnsight, TorchLens and transformers' DebugUnderflowOverflow (`--others`). Hooks are
attached before a forward pass is timed, as `stats` attaches them once for all of a run; how long
that takes is printed apart. `--in-torch` measures as where no program was compiled.

Prints for each way the ratio of the medians with the interval in which it lies in 19 of 20 samples
drawn from the same times, the ratio of the means of the faster halves, which a busy machine
disturbs less, the middle half of the ratios of neighbouring runs, and the peak memory; then the
cost per norm and token beside the time of one read of the same activations. It asserts nothing:
machines differ.
"""

import argparse
import importlib.util
import random
import re
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

import torch
import transformers
from torch import nn

from normscope.activations import compiled
from normscope.activations.plan import Plan, plan_measurement
from normscope.activations.probes import ModuleProbe, probing
from normscope.activations.shelf import Shelf
from normscope.activations.streams import Inputs

MODELS: dict[str, Callable[[], nn.Module]] = {
    "gpt2": lambda: transformers.GPT2Model(transformers.GPT2Config()),
    "bert": lambda: transformers.BertModel(transformers.BertConfig()),
}
Run = Callable[[], object]
Way = Callable[[], AbstractContextManager[Run]]
"""Prepares a forward pass, and tidies up after it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A model, what it is called with, and what is read of it."""

    model: nn.Module
    inputs: Inputs
    plan: Plan
    shelf: Shelf = field(default_factory=Shelf)

    def plain(self) -> object:
        """Run one forward pass."""
        return self.model(**self.inputs.keywords)

    @contextmanager
    def measured(self) -> Iterator[Run]:
        """Attach the probes for what runs inside."""
        with probing(self.model, self.plan.readings, shelf=self.shelf) as probes:
            probes.begin()
            yield self.plain


def main() -> None:
    """Compare the ways on one model, batch and dtype."""
    arguments = read_arguments()
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    torch.manual_seed(0)
    dtype = getattr(torch, arguments.dtype)
    model = MODELS[arguments.model]().eval().to(dtype)
    ids = torch.randint(0, 20000, (arguments.batch, arguments.tokens))
    inputs = Inputs(keywords={"input_ids": ids})
    subject = Subject(model=model, inputs=inputs, plan=plan_measurement(model, inputs))
    shape = f"{arguments.batch}x{arguments.tokens} tokens, {arguments.dtype}"
    print(f"{arguments.model}, {shape}, {torch.get_num_threads()} threads, "
          f"{len(subject.plan.readings)} values read, {arguments.rounds} rounds")  # fmt: skip
    with torch.no_grad():
        compare(subject, arguments)


def read_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", choices=MODELS, default="gpt2")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--tokens", type=int, default=512)
    parser.add_argument("--dtype", choices=["float32", "bfloat16"], default="float32")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=None)
    parser.add_argument("--in-torch", action="store_true", help="as without a compiler")
    parser.add_argument("--others", action="store_true", help="beside what else is installed")
    return parser.parse_args()


def compare(subject: Subject, arguments: argparse.Namespace) -> None:
    """Print a line for each way."""
    if arguments.in_torch:
        compiled._PROGRAM = None
    ways: dict[str, Way] = {"plain": lambda: nullcontext(subject.plain)}
    ways["normscope"] = subject.measured
    if arguments.others:
        ways |= others(subject)
    peaks = [{name: peak_memory(way) for name, way in ways.items()} for _ in range(3)]
    memory = {name: middle([peak[name] for peak in peaks]) for name in ways}
    times = interleaved(ways, arguments.rounds)
    for name, found in times.items():
        print(line(name, found, times["plain"]) + memory_words(memory[name], memory["plain"]))
    tokens = arguments.batch * arguments.tokens
    width = subject.model.config.hidden_size
    inside = time_inside(subject, min(arguments.rounds, 25))
    attached = time_attached(subject)
    read = one_read(tokens, width, subject.model.dtype)
    count = len(subject.plan.readings)
    share = inside / statistics.median(times["plain"])
    print(
        f"inside the hooks: {share:.2%} of the plain forward; per value and token "
        f"{1e9 * inside / count / tokens:.0f} ns, one read of it {1e9 * read:.0f} ns, "
        f"and all reads alone {count * tokens * read / statistics.median(times['plain']):.2%}; "
        f"attaching and removing, once a run: {1e3 * attached:.1f} ms"
    )


def line(name: str, found: list[float], plain: list[float]) -> str:
    """Return the ratios of one way."""
    ratios = sorted(b / a for a, b in zip(plain, found, strict=True))
    quarter = len(ratios) // 4
    low, high = interval(found, plain)
    return (
        f"{name:24} median {1e3 * statistics.median(found):8.1f} ms, ratio of medians "
        f"{statistics.median(found) / statistics.median(plain):.3f} ({low:.3f} to {high:.3f}), "
        f"of the faster halves {faster_half(found) / faster_half(plain):.3f}, "
        f"pairs {ratios[quarter]:.3f} to {ratios[-1 - quarter]:.3f}"
    )


def interval(found: list[float], plain: list[float]) -> tuple[float, float]:
    """Return where 19 of 20 ratios of medians lie, of times drawn anew from those measured."""
    source = random.Random(0)
    pairs = list(zip(found, plain, strict=True))
    ratios = []
    for _ in range(1000):
        drawn = source.choices(pairs, k=len(pairs))
        upper, lower = (statistics.median(times) for times in zip(*drawn, strict=True))
        ratios.append(upper / lower)
    ratios.sort()
    return ratios[25], ratios[-26]


def faster_half(times: list[float]) -> float:
    """Return the mean of the faster half."""
    return statistics.mean(sorted(times)[: -(-len(times) // 2)])


def memory_words(peak: int | None, plain: int | None) -> str:
    """Return the peak memory of one way, beside that of the plain forward."""
    if peak is None or plain is None:
        return ""
    return f", peak memory {peak / 2**20:.0f} MB ({peak / plain:.3f})"


def interleaved(ways: Mapping[str, Way], rounds: int) -> dict[str, list[float]]:
    """Return the times of each way; every round takes them in another order."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    names = list(ways)
    for turn in range(rounds):
        start = turn % len(names)
        # Whoever comes second finds warmer caches: take turns.
        for name in names[start:] + names[:start]:
            with ways[name]() as run:
                started = time.perf_counter()
                run()
                times[name].append(time.perf_counter() - started)
    return times


def peak_memory(way: Way) -> int | None:
    """Return the largest resident size during a run, in bytes; None where Linux does not tell."""
    with way() as run:
        run()
    status, reset = Path("/proc/self/status"), Path("/proc/self/clear_refs")
    if not reset.exists():
        return None
    with way() as run:
        reset.write_text("5", encoding="ascii")  # from here on
        run()
    peak = re.search(r"VmHWM:\s+(\d+) kB", status.read_text(encoding="ascii"))
    return None if peak is None else 1024 * int(peak[1])


def middle(peaks: list[int | None]) -> int | None:
    """Return the median: what an allocator holds on to differs from run to run."""
    found = [peak for peak in peaks if peak is not None]
    return int(statistics.median(found)) if found else None


def time_inside(subject: Subject, rounds: int) -> float:
    """Return the median time of a forward pass that is spent in hooks that read at once."""
    spent: list[float] = []
    pass_by = ModuleProbe.pass_by

    def timed(self: ModuleProbe, *values: object) -> None:
        started = time.perf_counter()
        pass_by(self, *values)
        spent[-1] += time.perf_counter() - started

    ModuleProbe.pass_by = timed  # type: ignore[method-assign]
    try:
        for _ in range(rounds):
            spent.append(0.0)
            with subject.measured() as run:
                run()
    finally:
        ModuleProbe.pass_by = pass_by  # type: ignore[method-assign]
    return statistics.median(spent)


def time_attached(subject: Subject) -> float:
    """Return the time that attaching and removing the probes takes."""
    started = time.perf_counter()
    with subject.measured():
        pass
    return time.perf_counter() - started


def one_read(rows: int, width: int, dtype: torch.dtype) -> float:
    """Return the time of one pass over an activation, by row."""
    value = torch.randn(rows, width).to(dtype)
    times = []
    for _ in range(50):
        started = time.perf_counter()
        value.sum(-1)
        times.append(time.perf_counter() - started)
    return min(times) / rows


# Other ways.


def others(subject: Subject) -> dict[str, Way]:
    """Return plain float32 hooks, and what is installed."""
    found: dict[str, Way] = {"float32 hooks": lambda: plain_hooks(subject)}
    if importlib.util.find_spec("nnsight") is not None:
        nnsight = nnsight_run(subject)
        found["nnsight"] = lambda: nullcontext(nnsight)
    found["DebugUnderflowOverflow"] = lambda: debugger(subject)
    if importlib.util.find_spec("torchlens") is not None:
        found["TorchLens"] = lambda: nullcontext(lambda: with_torchlens(subject))
    return found


def norms_of(model: nn.Module) -> list[nn.Module]:
    """Return the modules whose values are compared: these models have layer norms only."""
    return [module for module in model.modules() if isinstance(module, nn.LayerNorm)]


@contextmanager
def plain_hooks(subject: Subject) -> Iterator[Run]:
    """Take mean and variance as hooks usually do: upcast, then torch.var."""
    kept = []

    def hook(_module: nn.Module, args: tuple[torch.Tensor, ...], output: torch.Tensor) -> None:
        values = (args[0].float(), output.float())
        kept.extend((value.mean(-1), value.var(-1, correction=0)) for value in values)

    handles = [norm.register_forward_hook(hook) for norm in norms_of(subject.model)]
    yield subject.plain
    for handle in handles:
        handle.remove()


def nnsight_run(subject: Subject) -> Run:
    """Take the same in a trace of nnsight."""
    import nnsight

    wrapped = nnsight.NNsight(subject.model)
    norms = norms_of(subject.model)
    paths = [name for name, module in subject.model.named_modules() if module in norms]

    def run() -> None:
        kept = []
        with wrapped.trace(subject.inputs.keywords["input_ids"]):
            for path in paths:
                norm = wrapped
                for part in path.split("."):
                    norm = norm[int(part)] if part.isdecimal() else getattr(norm, part)
                values = (norm.input.float(), norm.output.float())
                kept += [(value.mean(-1), value.var(-1, correction=0)) for value in values]

    return run


@contextmanager
def debugger(subject: Subject) -> Iterator[Run]:
    """Let transformers look for values that are not finite."""
    from transformers.debug_utils import DebugUnderflowOverflow

    before = {id(module): dict(module._forward_hooks) for module in subject.model.modules()}
    DebugUnderflowOverflow(subject.model)
    yield subject.plain
    for module in subject.model.modules():
        for key in [key for key in module._forward_hooks if key not in before[id(module)]]:
            del module._forward_hooks[key]


def with_torchlens(subject: Subject) -> None:
    """Keep every activation of a forward pass."""
    import torchlens

    torchlens.trace(subject.model, subject.inputs.keywords["input_ids"])


if __name__ == "__main__":
    main()
