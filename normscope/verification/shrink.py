"""Config -> configs of smaller models of the same code, the smallest first.

Nothing here knows a model: an integer that is the length of a list of blocks becomes a shorter
length, and large integers are divided by one number, so that what divided before divides still.
What does not build or run is for the caller to find out; the next one is less small. The words
below only save vain attempts.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from normscope.inspection import BlockReport

_FEWEST = 3
"""Blocks of a stack: the first, one within, and the last, behind which a final norm may stand."""
_DIVISORS = (16, 8, 4, 2)
_WIDE = 64
"""Integers from which on a number is taken for a width."""
_NO_LENGTHS = ("head", "group", "kernel", "stride", "expert")
_NO_WIDTHS = (
    "vocab", "token", "_id", "_index", "image", "patch", "window", "mel", "position", "length",
    "rate", "frame", "kernel", "stride", "label", "resolution", "duration", "grid", "size_divisor",
)

Config = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shrunk:
    """One smaller config, and how it was made."""

    config: Config
    wording: str


def shrunk_configs(config: Config, blocks: tuple[BlockReport, ...]) -> Iterator[Shrunk]:
    """Yield smaller configs of the model whose blocks are known, then the config itself."""
    lengths = _lengths(blocks)
    fewer = _with_lengths(config, lengths)
    few = ", ".join(f"{new} of {old} blocks" for old, new in lengths.items())
    for divisor in _DIVISORS:
        wording = f"{few}, widths over {divisor}".removeprefix(", ")
        yield Shrunk(config=_with_widths(fewer, divisor), wording=wording)
    if few:
        yield Shrunk(config=fewer, wording=few)
    yield Shrunk(config=config, wording="the whole model")


def _lengths(blocks: tuple[BlockReport, ...]) -> dict[int, int]:
    """Map the length of each list of blocks to the one that still shows every kind of block."""
    lists: dict[str, list[BlockReport]] = {}
    for block in blocks:
        if block.stack is not None:
            lists.setdefault(block.path.rpartition(".")[0], []).append(block)
    lengths: dict[int, int] = {}
    for members in lists.values():
        paths = list(dict.fromkeys(block.path for block in members))
        first: dict[object, int] = {}
        for block in members:
            facts = tuple((item.kind, item.sites, item.parallel) for item in block.branches)
            first.setdefault(facts, paths.index(block.path))
        needed = max(_FEWEST, max(first.values()) + 2)
        if needed < len(paths):
            lengths[len(paths)] = max(lengths.get(len(paths), 0), needed)
    return lengths


def _with_lengths(value: Any, lengths: Mapping[int, int], key: str = "") -> Any:
    if isinstance(value, Mapping):
        return {name: _with_lengths(item, lengths, str(name)) for name, item in value.items()}
    if any(word in key for word in _NO_LENGTHS):
        return value
    if isinstance(value, list | tuple):
        kept = list(value[: lengths.get(len(value), len(value))])
        return [lengths.get(item, item) if _is_integer(item) else item for item in kept]
    return lengths.get(value, value) if _is_integer(value) else value


def _with_widths(value: Any, divisor: int, key: str = "") -> Any:
    if isinstance(value, Mapping):
        return {name: _with_widths(item, divisor, str(name)) for name, item in value.items()}
    if any(word in key for word in _NO_WIDTHS):
        return value
    if isinstance(value, list | tuple):
        whole = value and all(_is_integer(item) and item % divisor == 0 for item in value)
        return [item // divisor for item in value] if whole and sum(value) >= _WIDE else value
    if _is_integer(value) and value >= _WIDE and value % divisor == 0:
        return value // divisor
    return value


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
