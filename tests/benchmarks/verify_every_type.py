"""Every model type of transformers with --verify: what agrees, what differs, what cannot run.

    python tests/benchmarks/verify_every_type.py [--types bert,gpt2] [--jobs 2] [--output FILE]

Prints a line a type, with each disagreement in full, and the totals at the end; a type that takes
longer than --seconds is ended and counted. The tests run a sample of the same; this takes about an
hour on two cores. It ends with status 1 where a verdict and its numbers disagree.
"""

import argparse
import json
import multiprocessing
import resource
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, TextIO

from transformers.models.auto.modeling_auto import MODEL_MAPPING_NAMES

import normscope.verification.verify  # noqa: F401  # imported once, for all processes
from normscope.inspection import Uninspectable, Verification
from normscope.pipeline import InspectOptions, inspect_checkpoint

Found = dict[str, Any]


@dataclass(slots=True)
class Run:
    """One type in its own process, which ends with what it leaves behind."""

    model_type: str
    process: BaseProcess
    answer: Connection
    began: float = field(default_factory=time.monotonic)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--types", help="comma-separated; all of AutoModel's mapping otherwise")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--output", type=Path, help="one JSON object a type")
    arguments = parser.parse_args()
    named = arguments.types.split(",") if arguments.types else sorted(MODEL_MAPPING_NAMES)
    totals: Counter[str] = Counter()
    with ExitStack() as stack:
        written = stack.enter_context(arguments.output.open("w")) if arguments.output else None
        for found in sweep(named, arguments.jobs, arguments.seconds):
            count(found, totals)
            show(found, written)
    for what, number in sorted(totals.items()):
        print(f"{number:6} {what}")
    sys.exit(1 if totals["branches disagree"] or totals["norms disagree"] else 0)


def sweep(names: Sequence[str], jobs: int, seconds: float) -> Iterator[Found]:
    waiting, running = list(names), list[Run]()
    while waiting or running:
        while waiting and len(running) < jobs:
            running.append(started(waiting.pop(0)))
        wait([run.answer for run in running], timeout=1.0)
        for run in list(running):
            found = ended(run, seconds)
            if found is not None:
                running.remove(run)
                yield found


def started(model_type: str) -> Run:
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=answer, args=(model_type, there))
    process.start()
    there.close()
    return Run(model_type, process, here)


def ended(run: Run, seconds: float) -> Found | None:
    if run.answer.poll():
        try:
            found = run.answer.recv()
        except EOFError:
            found = {"type": run.model_type, "failure": "its process died"}
    elif time.monotonic() - run.began > seconds:
        run.process.kill()
        found = {"type": run.model_type, "failure": f"not done in {seconds:.0f} s"}
    else:
        return None
    run.process.join()
    run.answer.close()
    return found


def answer(model_type: str, there: Connection) -> None:
    began = time.monotonic()
    report = inspect_checkpoint(f"type:{model_type}", InspectOptions(verify=True))
    found: Found = {"type": model_type}
    if isinstance(report, Uninspectable):
        found["failure"] = f"{report.kind.value}: {report.message}"
    elif report.verification is not None:
        found |= facts_of(report.verification)
    found["seconds"] = round(time.monotonic() - began, 1)
    found["megabytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    there.send(found)


def facts_of(found: Verification) -> Found:
    checks = Counter(f"{check.fact}" for norm in found.norms for check in norm.checks)
    return {
        "copy": found.copy,
        "branches": len(found.branches),
        "norms": len(found.norms),
        "checks": dict(checks),
        "branches disagree": [
            f"{item.block}, branch {item.branch} ({item.kind.value}), seen in {item.seen_in}: "
            f"reported {item.reported.value}, observed {item.observed.value}; "
            + "; ".join(
                f"{c.intervention}: {c.predicted} | {c.observed}" for c in item.consequences
            )
            for item in found.branches
            if not item.agrees
        ],
        "norms disagree": [
            f"{norm.name}: {check.fact} reported {check.reported}, observed {check.observed}"
            for norm in found.norms
            for check in norm.checks
            if not check.agrees
        ],
        "branches not checked": dict(Counter(item.reason for item in found.branches_not_checked)),
        "norms not checked": [f"{item.what}: {item.reason}" for item in found.norms_not_checked],
    }


def count(found: Found, totals: Counter[str]) -> None:
    if "failure" in found:
        totals[f"types without an answer: {found['failure'].partition(':')[0]}"] += 1
        return
    disagree = found["branches disagree"] or found["norms disagree"]
    totals["types verified"] += 1
    totals["types whose every check agrees"] += not disagree
    totals["types without a running copy"] += found["copy"] == "none"
    totals["branches checked"] += found["branches"]
    totals["branches disagree"] += len(found["branches disagree"])
    totals["branches not checked"] += sum(found["branches not checked"].values())
    totals["norms checked"] += found["norms"]
    totals["norms disagree"] += len({text.partition(":")[0] for text in found["norms disagree"]})
    totals["norms not checked"] += len(found["norms not checked"])


def show(found: Found, written: TextIO | None) -> None:
    if written is not None:
        written.write(json.dumps(found) + "\n")
        written.flush()
    said = found.get("failure") or (
        f"{found['branches']} branches, {found['norms']} norms checked; {found['copy']}"
    )
    print(f"{found['type']}: {said} ({found.get('seconds', 0)} s, {found.get('megabytes', 0)} MB)")
    for text in (*found.get("branches disagree", ()), *found.get("norms disagree", ())):
        print(f"    differs: {text}")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
