"""`normscope audit` of many targets: throughput, memory, and what jobs and the cache are worth.

    python tests/benchmarks/audit_scale.py [--targets 1000] [--keep FOLDER]

Writes configs of many families and depths into a folder, a tenth of them broken in one of many
ways, and a policy of them, and runs in turn: `audit --jobs 1` and `--jobs 2`, each without any kept
answer; `--jobs 2` again, from the cache; the same with copies of one config in place of all; and a
tenth of the targets. Prints targets a second, processor seconds, and the highest resident memory of
the command's own process and of any other process that it started, in MB of 10^6 bytes. The
targets of a run have to be answered, each once, or it ends with an error; nothing else is asserted:
machines differ, and a machine that is busy with other work tells little about `--jobs`.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

DEPTHS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
NARROW = {"hidden_size": 64, "num_attention_heads": 4, "vocab_size": 128}
GATED = {**NARROW, "intermediate_size": 128, "num_key_value_heads": 2}
FAMILIES: dict[str, dict[str, object]] = {
    "bert": {**NARROW, "intermediate_size": 128},
    "roberta": {**NARROW, "intermediate_size": 128},
    "electra": {**NARROW, "intermediate_size": 128, "embedding_size": 64},
    "gpt2": {"n_embd": 64, "n_head": 4, "vocab_size": 128},
    "gpt_neox": {**NARROW, "intermediate_size": 128},
    "opt": {**NARROW, "ffn_dim": 128, "word_embed_proj_dim": 64},
    "llama": GATED,
    "mistral": GATED,
    "qwen2": GATED,
    "qwen3": {**GATED, "head_dim": 16},
    "gemma2": {**GATED, "head_dim": 16},
    "olmo2": GATED,
    "phi3": {**GATED, "pad_token_id": 0},
    "t5": {"d_model": 64, "d_ff": 128, "num_heads": 4, "d_kv": 16, "vocab_size": 128},
    "vit": {**NARROW, "intermediate_size": 128, "image_size": 32, "patch_size": 16},
    "wav2vec2": {**NARROW, "intermediate_size": 128},
}
DEPTH_KEYS = {"gpt2": "n_layer", "t5": "num_layers"}
BROKEN = (
    "too deep",
    "not JSON",
    "not an object",
    "a pipe",
    "no permission",
    "unknown type",
    "no type",
    "wrong field",
    "negative size",
    "remote code",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--targets", type=int, default=1000)
    parser.add_argument("--keep", type=Path, help="where to leave targets, reports and figures")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.keep or Path(temporary)
        write_targets(folder / "many", arguments.targets)
        write_targets(folder / "few", max(arguments.targets // 10, 1))
        write_copies(folder / "copies", arguments.targets)
        runs = list(measured(folder, arguments.targets))
    say_ratios(runs)


def measured(folder: Path, targets: int) -> "Iterator[Run]":
    print(f"{targets} targets, load {os.getloadavg()[0]:.1f}, {os.cpu_count()} processors")
    for name, where, jobs, cache in (
        ("cold, 1 job", "many", 1, "one"),
        ("cold, 2 jobs", "many", 2, "two"),
        ("cached", "many", 2, "two"),
        ("a tenth, cached", "few", 2, "two"),
        ("a tenth, cold", "few", 2, "three"),
        ("copies of one", "copies", 2, "four"),
    ):
        run = audited(name, folder / where, jobs, folder / f"cache-{cache}")
        print(run)
        yield run


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One audit, and what it took."""

    name: str
    targets: int
    failed: int
    seconds: float
    processor: float
    own_memory: int
    other_memory: int
    load: float

    def __str__(self) -> str:
        return (
            f"{self.name:16} {self.targets:5} targets, {self.failed:4} failed"
            f"{self.seconds:9.2f} s {self.targets / self.seconds:9.1f}/s"
            f"{self.processor:9.2f} s of processors"
            f"{self.own_memory / 1e6:7.0f} MB itself {self.other_memory / 1e6:6.0f} MB others"
            f"   load {self.load:.1f}"
        )


def say_ratios(runs: list[Run]) -> None:
    one, two, cached, few, few_cold, _ = runs
    print(f"2 jobs are {one.seconds / two.seconds:.2f} times as fast as 1")
    print(
        f"2 jobs take {two.processor / one.processor:.2f} times the processor seconds of 1: beside "
        "other work, this tells more of them than the clock does"
    )
    print(f"the cache is {two.seconds / cached.seconds:.0f} times as fast as 2 jobs")
    print(f"the cache is {one.seconds / cached.seconds:.0f} times as fast as 1 job")
    print(
        f"10 times the targets take {(cached.own_memory - few.own_memory) / 1e6:+.1f} MB from the "
        f"cache, {(two.own_memory - few_cold.own_memory) / 1e6:+.1f} MB cold"
    )


# Running and watching.


def audited(name: str, folder: Path, jobs: int, cache: Path) -> Run:
    report = folder / f"report-{jobs}.jsonl"
    command = [sys.executable, "-m", "normscope", "audit", "--policy", str(folder / "policy.toml")]
    command += ["-f", "jsonl", "--jobs", str(jobs), "--quiet"]
    command += ["--timeout", "120", "--memory-limit", "4GB"]
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache), "HF_HUB_OFFLINE": "1"}
    before = time.monotonic()
    with report.open("w") as lines:
        process = subprocess.Popen(
            command, env=environment, stdout=lines, stderr=subprocess.DEVNULL
        )
    others = Others(memory={}, processor={})
    watcher = threading.Thread(target=watch, args=(process.pid, others), daemon=True)
    watcher.start()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.monotonic() - before
    counts = checked(report, folder)
    return Run(
        name=name,
        targets=sum(counts.values()),
        failed=counts["normscope.failure/1"],
        seconds=seconds,
        processor=usage.ru_utime + usage.ru_stime + sum(others.processor.values()),
        own_memory=1024 * usage.ru_maxrss,
        other_memory=max(others.memory.values(), default=0),
        load=os.getloadavg()[0],
    )


def checked(report: Path, folder: Path) -> Counter[str]:
    """Count the lines by schema; every target has to be there once."""
    lines = [json.loads(line) for line in report.read_text().splitlines()]
    answers = [line for line in lines if line["schema"] != "normscope.audit-summary/1"]
    seen = Counter(line["target"] for line in answers)
    wanted = {f"targets/{path.name}" for path in (folder / "targets").iterdir()}
    if set(seen) != wanted or max(seen.values()) > 1:
        raise SystemExit(f"{len(wanted - set(seen))} targets have no answer")
    return Counter(line["schema"] for line in answers)


@dataclass(frozen=True, slots=True, kw_only=True)
class Others:
    """What every process below one took, by its number."""

    memory: dict[int, int]
    processor: dict[int, float]


def watch(process: int, others: Others) -> None:
    """Look four times a second at every process below one; the last moments of one are missed."""
    while Path(f"/proc/{process}").exists():
        parents = dict(processes())
        for number in parents:
            if descends(number, process, parents):
                others.memory[number] = max(others.memory.get(number, 0), peak(number))
                others.processor[number] = max(others.processor.get(number, 0), seconds_of(number))
        time.sleep(0.25)


def processes() -> Iterator[tuple[int, int]]:
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            parent = field(int(folder.name), "PPid")
            yield int(folder.name), parent


def descends(number: int, from_process: int, parents: dict[int, int]) -> bool:
    while number in parents:
        number = parents[number]
        if number == from_process:
            return True
    return False


def peak(process: int) -> int:
    return 1024 * field(process, "VmHWM")


def seconds_of(process: int) -> float:
    try:
        words = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def field(process: int, name: str) -> int:
    try:
        status = Path(f"/proc/{process}/status").read_text()
    except OSError:
        return 0
    lines = (line.split() for line in status.splitlines())
    return next((int(words[1]) for words in lines if words[0] == f"{name}:"), 0)


# Writing the targets.


def write_targets(folder: Path, count: int) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    targets = folder / "targets"
    targets.mkdir(parents=True)
    for number in range(count):
        target = targets / f"{number:05}"
        target.mkdir()
        if number % 10 == 9:
            break_target(target, BROKEN[number // 10 % len(BROKEN)], number)
        else:
            (target / "config.json").write_text(json.dumps(config_of(number)))
    write_policy(folder)


def write_copies(folder: Path, count: int) -> None:
    targets = folder / "targets"
    shutil.rmtree(folder, ignore_errors=True)
    for number in range(count):
        (targets / f"{number:05}").mkdir(parents=True)
        (targets / f"{number:05}" / "config.json").write_text(json.dumps(config_of(6)))
    write_policy(folder)


def write_policy(folder: Path) -> None:
    policy = '[[family]]\nname = "all"\ntargets = ["targets/*"]\nexpect = { gain = "w" }\n'
    (folder / "policy.toml").write_text(policy)


def config_of(number: int) -> dict[str, object]:
    """Return a config that no other number has."""
    family = list(FAMILIES)[number % len(FAMILIES)]
    turn = number // len(FAMILIES)
    depth = DEPTHS[turn % len(DEPTHS)]
    config = {"model_type": family, **FAMILIES[family], DEPTH_KEYS.get(family, LAYERS): depth}
    return {**config, "bos_token_id": 0, "eos_token_id": 1, "number": number}


LAYERS = "num_hidden_layers"


def break_target(target: Path, how: str, number: int) -> None:
    path = target / "config.json"
    good = {**config_of(6), "number": number}
    match how:
        case "a pipe":
            os.mkfifo(path)
            return
        case "not JSON":
            text = '{"model_type": "llama", '
        case "not an object":
            text = "[1, 2]"
        case "no type":
            text = json.dumps({"hidden_size": 64})
        case "unknown type":
            text = json.dumps({**good, "model_type": "no-such-type"})
        case "wrong field":
            text = json.dumps({**good, "hidden_size": "wide"})
        case "negative size":
            text = json.dumps({**good, "intermediate_size": -64})
        case "remote code":
            code = {"AutoConfig": "own.Config", "AutoModel": "own.Model"}
            text = json.dumps({**good, "model_type": "own", "auto_map": code})
        case "too deep":
            text = json.dumps({**good, LAYERS: 10_000_000})
        case _:
            text = json.dumps(good)
    path.write_text(text)
    if how == "no permission":
        path.chmod(0)  # the superuser may read it all the same


if __name__ == "__main__":
    main()
