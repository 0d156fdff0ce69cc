"""How many damaged files each reader refuses in words: a bounded program of random mutations.

    python tests/benchmarks/fuzz_readers.py --seconds 60 [NAME ...]

A good file of each kind is changed in one to four places, again and again. What a reader raises
beside `NormscopeError` and `UsageError` is kept with its input and counted as a crash.
"""

import argparse
import random
import sys
import time
import traceback
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).parents[1]))

from specimens.damage import damaged  # only now
from specimens.readers import READERS, Reader

_SLOW = 2.0
"""Seconds of computing after which one input is worth a look."""


def fuzzed(reader: Reader, seconds: float, seed: int, kept: Path) -> Counter[str]:
    """Return how many inputs were read, refused, slow, and crashed the reader."""
    counts: Counter[str] = Counter()
    chance = random.Random(seed)
    with TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / reader.name
        good = reader.content(folder)
        path.write_bytes(good)
        reader.read(path)
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            content = damaged(good, chance)
            path.write_bytes(content)
            begun = time.process_time()
            found = _outcome(reader, path)
            counts[found.partition(":")[0]] += 1
            slow = time.process_time() - begun > _SLOW
            counts["slow"] += slow
            if found.startswith("crash") or slow:
                _keep(kept, reader, content, found)
    return counts


def _outcome(reader: Reader, path: Path) -> str:
    try:
        reader.read(path)
    except reader.errors:
        return "refused"
    except Exception:  # noqa: BLE001  # that is what is looked for
        return f"crash: {traceback.format_exc()}"
    return "read"


def _keep(kept: Path, reader: Reader, content: bytes, found: str) -> None:
    kept.mkdir(parents=True, exist_ok=True)
    last = found.strip().splitlines()[-1]
    name = f"{reader.name}.{abs(hash(last[:60])) % 10_000}"
    if not (kept / name).exists():
        (kept / name).write_bytes(content)
        (kept / f"{name}.txt").write_text(found)
        print(f"{reader.name}: {last}", flush=True)


def main() -> None:
    """Fuzz the readers that are named, or all."""
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kept", type=Path, default=Path("crashes"))
    typed = parser.parse_args()
    for reader in READERS:
        if not typed.names or reader.name in typed.names:
            counts = fuzzed(reader, typed.seconds, typed.seed, typed.kept)
            print(f"{reader.name}: {dict(sorted(counts.items()))}", flush=True)


if __name__ == "__main__":
    main()
