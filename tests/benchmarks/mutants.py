"""Small changes of the analysis that no test sees: a bounded program of mutation testing.

    python tests/benchmarks/mutants.py --seconds 1800 --report survivors.txt

No file is changed. The tests run once as they are; their forward passes are kept, and so is which
statements the analysis of each runs. Then every mutant is put into a fork of this process. What
was kept is analysed again where the changed statement runs, first in the tests that have killed the
most in the least time; a test whose answers are others than before is run, and the first that fails
kills the mutant. The order of the mutants is that of a seed, so that a part of them is a fair
sample. Of what survives it is told in which tests an answer is another without a failure: those are
holes that a test can be written for.

With the tests of `QUICK` a mutant takes about half a second, with all of `TESTS` one to three;
`--quick`, and then `--again` with its report, is the short way to an answer. The families of
`functional/test_corpus.py` can be given too, and take minutes to begin with.
"""

import argparse
import gc
import importlib
import json
import math
import os
import pickle
import random
import resource
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

sys.path.insert(0, str(Path(__file__).parents[2]))

from mutations import MARKS, Mutant, marked, mutants_of, take_over  # only now
from recorded_passes import Analysis, RecordedPasses

ROOT = Path(__file__).parents[2]
PACKAGES = ("norms", "residuals", "placement")
QUICK = (
    "tests/functional/test_mutants_seen.py",
    "tests/functional/test_mutants_seen_kinds.py",
    "tests/functional/test_mutants_seen_norms.py",
    "tests/functional/test_mutants_seen_places.py",
    "tests/functional/test_near_misses.py",
    "tests/functional/test_wirings.py",
    "tests/functional/test_modules.py",
    "tests/functional/test_pieces.py",
    "tests/functional/test_odd_blocks.py",
    "tests/unit/test_residuals_long_sums.py",
    "tests/unit/test_norms_schema_defaults.py",
)
TESTS = (
    *QUICK,
    "tests/properties/test_specimens.py",
    "tests/functional/test_norm_facts.py",
    "tests/functional/test_detectors.py",
    "tests/functional/test_stacked_streams.py",
    "tests/functional/test_families.py",
)
CHANCE = "any_spec"
"""Part of the names of tests whose models are others each time: nothing of them can be kept."""
_SECONDS = 10
"""Of computing that one mutant may take beyond three times what its tests take: some never end."""
_MEMORY = 4 << 30
"""Bytes that one mutant may take: some never end in this way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of one mutant."""

    word: str
    """`killed`, `survived`, or `not reached` where no test runs the statement."""
    by: str = ""
    """The test that killed it."""
    tests: int = 0
    """How many tests were looked at."""
    differing: tuple[str, ...] = ()
    """The tests whose answers it changes, without a failure."""


@dataclass(kw_only=True)
class Judge:
    """A plugin of pytest that runs the collected tests again for every mutant."""

    mutants: list[Mutant]
    texts: Mapping[str, str]
    seconds: float
    longest: float
    report: Path
    passes: RecordedPasses = field(default_factory=RecordedPasses)
    took: dict[str, float] = field(default_factory=dict)
    kills: Counter[str] = field(default_factory=Counter)
    reached: dict[str, set[tuple[str, int]]] = field(default_factory=dict)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Take the place of pytest's own loop."""
        if session.testsfailed:
            raise SystemExit("some tests cannot be collected")
        begun = time.monotonic()
        items = {item.nodeid: item for item in session.items if CHANCE not in item.nodeid}
        for item in items.values():
            if not self._passes(item):
                raise SystemExit(f"fails without any mutant: {item.nodeid}")
            gc.freeze()  # what was kept is never looked through again, nor copied for that
        self.passes.recording = False
        self.took = in_child(lambda: {name: self._timed(item) for name, item in items.items()})
        items = {name: item for name, item in items.items() if self.took[name] <= self.longest}
        self.reached = in_child(lambda: self._reached(items))
        again = sum(self.took[name] for name in items)
        print(
            f"{len(items)} of {len(self.took)} tests take {again:.1f} s again; "
            f"{time.monotonic() - begun:.0f} s to begin with"
        )
        self._judge_all(items)
        return True

    def _passes(self, item: pytest.Item) -> bool:
        self.passes.begin(item.nodeid)
        reports = runtestprotocol(item, log=False, nextitem=None)
        return not any(report.failed for report in reports)

    def _timed(self, item: pytest.Item) -> float:
        begun = time.process_time()
        if not self._is_as_it_was(item):
            print(f"another answer when it is run again: {item.nodeid}")
        return time.process_time() - begun

    def _is_as_it_was(self, item: pytest.Item) -> bool:
        """Tell whether the test's answers are the same, or the test passes where it kept none."""
        analyses = self.passes.analyses[item.nodeid]
        return not any(map(Analysis.differs, analyses)) if analyses else self._passes(item)

    def _reached(self, items: Mapping[str, pytest.Item]) -> dict[str, set[tuple[str, int]]]:
        """Return the statements that each test runs."""
        for name, text in self.texts.items():
            take_over(sys.modules[name], text, marked(text))
        found: dict[str, set[tuple[str, int]]] = {}
        for test, item in items.items():
            self._is_as_it_was(item)
            found[test] = set()
            for name in self.texts:
                lines = getattr(sys.modules[name], MARKS)
                found[test] |= {(name, line) for line in lines}
                lines.clear()
        return found

    def _judge_all(self, items: Mapping[str, pytest.Item]) -> None:
        counts: dict[str, Counter[str]] = {}
        begun = time.monotonic()
        with self.report.open("w", encoding="utf-8") as report:
            for number, mutant in enumerate(self.mutants, start=1):
                if time.monotonic() - begun > self.seconds:
                    break
                found = self._judged(mutant, items)
                package = mutant.module.split(".")[1]
                counts.setdefault(package, Counter())[found.word] += 1
                if found.word == "killed":
                    self.kills[found.by] += 1
                else:
                    told = [found.word, f"{found.tests} tests", *found.differing]
                    print(mutant, "; ".join(told), sep="\t", file=report, flush=True)
                if number % 20 == 0:
                    print(f"{number} in {time.monotonic() - begun:.0f} s: {_shown(counts)}")
        print(f"of {len(self.mutants)}: {_shown(counts)}; {time.monotonic() - begun:.0f} s")
        for test, kills in self.kills.most_common(40):
            print(f"{kills:4d} {self.took.get(test, 0.0):7.3f} s  {test}")

    def _judged(self, mutant: Mutant, items: Mapping[str, pytest.Item]) -> Outcome:
        place = mutant.module, mutant.statement
        running = [
            test for test in items if mutant.statement is None or place in self.reached[test]
        ]
        if not running:
            return Outcome(word="not reached")
        running.sort(key=lambda test: self.took[test] / (self.kills[test] + 0.1))
        try:
            return in_child(lambda: self._outcome(mutant, {test: items[test] for test in running}))
        except ChildFailed:
            return Outcome(word="killed", by="its limits")

    def _outcome(self, mutant: Mutant, items: Mapping[str, pytest.Item]) -> Outcome:
        seconds = _SECONDS + 3 * math.ceil(sum(self.took[test] for test in items))
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        resource.setrlimit(resource.RLIMIT_DATA, (_data_held() + _MEMORY,) * 2)
        take_over(sys.modules[mutant.module], self.texts[mutant.module], mutant.source)
        differing: list[str] = []
        for number, (test, item) in enumerate(items.items(), start=1):
            if self._is_as_it_was(item):
                continue
            if not self._passes(item):
                return Outcome(word="killed", by=test, tests=number)
            differing.append(test)
        return Outcome(word="survived", tests=len(items), differing=tuple(differing))


class ChildFailed(Exception):
    """A child ended without an answer."""


def in_child(work: Callable[[], Any]) -> Any:
    """Return what `work` gives in a fork of this process; raises `ChildFailed` where it dies."""
    reading, writing = os.pipe()
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        try:
            os.close(reading)
            with os.fdopen(writing, "wb") as pipe:
                pipe.write(pickle.dumps(work()))
            os._exit(0)
        finally:  # never goes on as the parent
            os._exit(70)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        answer = pipe.read()
    _, status = os.waitpid(child, 0)
    if status:
        raise ChildFailed
    return pickle.loads(answer)


def _data_held() -> int:
    status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
    return 1024 * int(status.partition("VmData:")[2].split()[0])


def _shown(counts: Mapping[str, Mapping[str, int]]) -> str:
    return json.dumps({package: dict(found) for package, found in sorted(counts.items())})


def _mutants(texts: Mapping[str, str], seed: int, again: Path | None) -> list[Mutant]:
    mutants = [mutant for name, text in texts.items() for mutant in mutants_of(name, text)]
    random.Random(seed).shuffle(mutants)
    if again is None:
        return mutants
    listed = {line.partition("\t")[0] for line in again.read_text(encoding="utf-8").splitlines()}
    return [mutant for mutant in mutants if str(mutant) in listed]


def main() -> None:
    """Run as many mutants as the time allows and print what came of them."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--packages", nargs="+", default=PACKAGES)
    parser.add_argument("--tests", nargs="+", default=TESTS)
    parser.add_argument("--quick", dest="tests", action="store_const", const=QUICK)
    parser.add_argument("--seconds", type=float, default=1800.0)
    parser.add_argument("--longest", type=float, default=1.0, help="seconds that a test may take")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--again", type=Path, help="a report: only the mutants that it lists")
    parser.add_argument("--report", type=Path, default=Path("survivors.txt"))
    typed = parser.parse_args()
    texts: dict[str, str] = {}
    for package in typed.packages:
        for path in sorted((ROOT / "normscope" / package).glob("[!_]*.py")):
            name = f"normscope.{package}.{path.stem}"
            importlib.import_module(name)
            texts[name] = path.read_text(encoding="utf-8")
    judge = Judge(
        mutants=_mutants(texts, typed.seed, typed.again),
        texts=texts,
        seconds=typed.seconds,
        longest=typed.longest,
        report=typed.report.resolve(),
    )
    os.chdir(ROOT)
    options = ["-q", "-s", "-p", "no:cacheprovider", "--tb=no", "-W", "ignore:Module already"]
    raise SystemExit(pytest.main([*options, *typed.tests], plugins=[judge]))


if __name__ == "__main__":
    main()
