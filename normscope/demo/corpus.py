"""The help topics of the running Python -> training and held-out text of the demo models."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from pydoc_data.topics import topics
from typing import Final

# Named rather than drawn, so that the split is the same topics under every version of Python.
HELD_OUT_TOPICS: Final = ("assignment", "calls", "comparisons", "execmodel", "try")


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Corpus:
    """The two disjoint parts of the text, each a tuple of documents in UTF-8."""

    train: tuple[bytes, ...]
    held_out: tuple[bytes, ...]


def load_corpus() -> Corpus:
    """Return the help topics of this Python, split by topic into training and held-out text.

    Topics quote one another at length, so a paragraph that occurs in a held-out topic is left out
    of the training text: without that, the held-out loss would partly measure memory.
    """
    held_out = {name: topics[name] for name in HELD_OUT_TOPICS}
    seen = {_normalised(part) for text in held_out.values() for part in text.split("\n\n")}
    train: list[bytes] = []
    for name in sorted(topics.keys() - held_out.keys()):
        kept = [part for part in topics[name].split("\n\n") if _normalised(part) not in seen]
        if kept:
            train.append("\n\n".join(kept).encode())
    return Corpus(train=tuple(train), held_out=tuple(text.encode() for text in held_out.values()))


def _normalised(paragraph: str) -> str:
    # Topics indent the paragraphs that they share differently.
    return " ".join(paragraph.split())


def unigram_entropy(data: bytes) -> float:
    """Return the entropy of the distribution of single bytes in ``data``, in nats per byte."""
    counts = Counter(data)
    return -sum(n / len(data) * math.log(n / len(data)) for n in counts.values())
