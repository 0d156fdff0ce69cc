"""Time of a watched call beside the same call unwatched, in inference and in training, interleaved.

    python tests/benchmarks/watch_overhead.py [--layers 2] [--tokens 512] [--rounds 41]

It asserts nothing: machines differ.
"""

import argparse
import statistics
import time
from contextlib import nullcontext

import torch
import transformers
from torch import nn

import normscope


def main() -> None:
    """Print the ratio of the medians for both."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--tokens", type=int, default=512)
    parser.add_argument("--rounds", type=int, default=41)
    arguments = parser.parse_args()
    torch.manual_seed(0)
    model = transformers.GPT2Model(transformers.GPT2Config(n_layer=arguments.layers))
    ids = torch.randint(0, 20000, (1, arguments.tokens))
    for training in (False, True):
        model.train(training)
        plain, watched = interleaved(model, ids, arguments.rounds)
        print(
            f"{'training' if training else 'inference'}: {1e3 * plain:.1f} ms, watched "
            f"{1e3 * watched:.1f} ms, ratio {watched / plain:.3f}"
        )


def interleaved(model: nn.Module, ids: torch.Tensor, rounds: int) -> tuple[float, float]:
    """Return the median times of a call and of a watched one; they take turns in being first."""
    times: dict[bool, list[float]] = {False: [], True: []}
    watch = normscope.watch(model)
    with watch:
        step(model, ids)  # which finds the norms
    for turn in range(rounds):
        for watched in (turn % 2 == 0, turn % 2 == 1):
            with watch if watched else nullcontext():
                started = time.perf_counter()
                step(model, ids)
                times[watched].append(time.perf_counter() - started)
    return statistics.median(times[False]), statistics.median(times[True])


def step(model: nn.Module, ids: torch.Tensor) -> None:
    """Run the model, in training with its gradients."""
    with torch.set_grad_enabled(model.training):
        out = model(input_ids=ids).last_hidden_state.square().mean()
    if model.training:
        out.backward()
        model.zero_grad()


if __name__ == "__main__":
    main()
