"""Whole processes of `normscope`: time and memory beside a process that only imports.

    python tests/benchmarks/inspect_startup.py [--rounds 7]

Runs, in turn and many times: a process that imports torch; one that imports torch and the
transformers classes of a model; `normscope inspect` of that model with `--no-cache`; the same
answer from the cache; `normscope --help`. Prints for each the median of its wall time and of its
processor time as a ratio to the imports of the same round, with the quartiles, and the highest
resident memory in MB of 10^6 bytes. What is installed decides what transformers imports (scipy
alone is 35 MB): run it in an environment with nothing but normscope's own requirements to compare
the memory. Nothing is asserted: machines differ.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field

IMPORT_TORCH = "import torch"
IMPORT_CLASS = "import torch, transformers; transformers.{}"


@dataclass(slots=True)
class Program:
    """One command, what it is compared with, and what its runs took."""

    name: str
    command: list[str]
    beside: str
    wall: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)
    memory: list[float] = field(default_factory=list)


def programs() -> list[Program]:
    def python(name: str, source: str) -> Program:
        return Program(name=name, command=[sys.executable, "-c", source], beside="import torch")

    def normscope(name: str, beside: str, *words: str) -> Program:
        command = [sys.executable, "-m", "normscope", *words]
        return Program(name=name, command=command, beside=beside)

    return [
        python("import torch", IMPORT_TORCH),
        python("import LlamaModel", IMPORT_CLASS.format("LlamaModel")),
        python("import DeepseekV3Model", IMPORT_CLASS.format("DeepseekV3Model")),
        normscope("llama", "import LlamaModel", "inspect", "type:llama", "--no-cache"),
        normscope("bert", "import LlamaModel", "inspect", "type:bert", "--no-cache"),
        normscope(
            "deepseek_v3", "import DeepseekV3Model", "inspect", "type:deepseek_v3", "--no-cache"
        ),
        normscope("bert, from the cache", "import torch", "inspect", "type:bert"),
        normscope("llama, from the cache", "import torch", "inspect", "type:llama"),
        normscope("--help", "import torch", "--help"),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "XDG_CACHE_HOME": folder}
        every = programs()
        for program in every:  # fills the caches, of files and of answers
            run(program, environment)
        for program in every:
            program.wall.clear()
            program.processor.clear()
        for turn in range(arguments.rounds):
            for program in every if turn % 2 else reversed(every):
                run(program, environment)
    report(every, arguments.rounds)


def run(program: Program, environment: dict[str, str]) -> None:
    began = time.perf_counter()
    # Started by itself, so that wait4 tells of this process alone.
    process = subprocess.Popen(
        program.command,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, usage = os.wait4(process.pid, 0)
    program.wall.append(time.perf_counter() - began)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(program.command)} ended with {process.returncode}")
    program.processor.append(usage.ru_utime + usage.ru_stime)
    unit = 1 if sys.platform == "darwin" else 1024
    program.memory.append(usage.ru_maxrss * unit / 1e6)


def report(every: list[Program], rounds: int) -> None:
    by_name = {program.name: program for program in every}
    print(f"{rounds} rounds; ratios of the same round: median (quartiles)")
    print(f"{'':24}{'wall':>22}{'processor':>22}   MB   to the process that runs")
    for program in every:
        beside = by_name[program.beside]
        wall = spread(program.wall, beside.wall)
        processor = spread(program.processor, beside.processor)
        memory = statistics.median(program.memory)
        print(f"{program.name:24}{wall:>22}{processor:>22} {memory:4.0f}   {program.beside}")


def spread(ours: list[float], theirs: list[float]) -> str:
    ratios = sorted(a / b for a, b in zip(ours, theirs, strict=True))
    low, high = ratios[len(ratios) // 4], ratios[(3 * len(ratios)) // 4]
    return f"{statistics.median(ratios):.2f} ({low:.2f}-{high:.2f})"


if __name__ == "__main__":
    main()
