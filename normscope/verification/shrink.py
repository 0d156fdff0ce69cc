"""Config -> configs of smaller models of the same code, the smallest first.

Nothing here knows a model: an integer that is the length of a list of blocks becomes a shorter
length, and large integers are divided by one number, so that what divided before divides still.
What does not build or run is for the caller to find out; the next one is less small. The words
below only save vain attempts.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from normscope.inspection import BlockReport

_FEWEST = 3
"""Blocks of a stack: the first, one within, and the last, behind which a final norm may stand."""
_DIVISORS = (16, 8, 4, 2)
_WIDE = 64
"""Integers from which on a number is taken for a width."""
_PATCHES = 4
"""Patches along a side of a small image."""
_CONVOLVED = 128
"""Side of a small image that is not cut into patches."""
_NO_LENGTHS = (
    "head",
    "group",
    "kernel",
    "stride",
    "expert",
    "codebook",
    "quantizer",
    "position",
    "length",
)
_NO_WIDTHS = (
    "num_",
    "heads",
    "vocab",
    "codebook_size",
    "token",
    "offset",
    "_id",
    "_index",
    "image",
    "patch",
    "window",
    "mel",
    "position",
    "length",
    "rate",
    "frame",
    "kernel",
    "stride",
    "label",
    "resolution",
    "duration",
    "grid",
    "size_divisor",
)

Config = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shrunk:
    """One smaller config, and how it was made."""

    config: Config
    wording: str


def shrunk_configs(config: Config, blocks: Sequence[BlockReport]) -> Iterator[Shrunk]:
    """Yield smaller configs of the model whose blocks are known, then the config itself."""
    lengths = _lengths(blocks)
    few = ", ".join(f"{new} of {old} blocks" for old, new in lengths.items())
    # A list may have one entry a block, or a length that only happens to be the same.
    fewer = [_with_lengths(config, lengths, cut=cut) for cut in (True, False)] if few else []
    for divisor in _DIVISORS:
        for one in fewer or [config]:
            yield from _narrow(_with_widths(one, divisor), few, f"widths over {divisor}")
        # The size of a head may be fixed by the code (sections of a rotary embedding).
        for one in fewer or [config]:
            fewer_heads = _with_widths(one, divisor, heads=True)
            yield from _narrow(fewer_heads, few, f"widths and heads over {divisor}")
    yield from (Shrunk(config=one, wording=few) for one in fewer)
    yield Shrunk(config=config, wording="the whole model")


def _narrow(config: Config, few: str, how: str) -> Iterator[Shrunk]:
    wording = f"{few}, {how}".removeprefix(", ")
    yield Shrunk(config=_with_images(config), wording=f"{wording}, small images")
    yield Shrunk(config=config, wording=wording)


def with_changes(given: Config, whole: Config, shrunk: Config, *, entire: bool = False) -> Config:
    """Return what was given with the shrunk values in it, without what follows from it.

    A config class derives further fields from those that were given (names of stages, what each
    block is), and derives them anew from the smaller ones; also one within another. A plain
    mapping is given whole, and so is, with `entire`, each config within that was not given: its
    own class has other values by default than the config around it.
    """
    changed: dict[str, Any] = dict(given)
    for name, value in shrunk.items():
        if isinstance(value, Mapping) and "model_type" in value:
            inner = given.get(name)
            if entire and not isinstance(inner, Mapping):
                changed[name] = value
                continue
            within = inner if isinstance(inner, Mapping) else {}
            part = with_changes(within, whole[name], value, entire=entire)
            if part:
                # Some classes ask which config it is before they read the rest of it.
                changed[name] = {"model_type": value["model_type"], **part}
        elif value != whole[name]:
            changed[name] = value
    return changed


def _lengths(blocks: Sequence[BlockReport]) -> dict[int, int]:
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


def _with_lengths(value: Any, lengths: Mapping[int, int], key: str = "", *, cut: bool) -> Any:
    if isinstance(value, Mapping):
        return {
            name: _with_lengths(item, lengths, str(name), cut=cut) for name, item in value.items()
        }
    if any(word in key for word in _NO_LENGTHS):
        return value
    if isinstance(value, list | tuple):
        kept = value[: lengths.get(len(value), len(value))] if cut else value
        return [lengths.get(item, item) if _is_integer(item) else item for item in kept]
    return lengths.get(value, value) if _is_integer(value) else value


def _with_widths(value: Any, divisor: int, key: str = "", *, heads: bool = False) -> Any:
    if isinstance(value, Mapping):
        if any(_is_integer(name) or name.isdecimal() for name in value):
            return value  # by index of a block: derived, or not for every length
        return {
            name: _with_widths(item, divisor, str(name), heads=heads)
            for name, item in value.items()
        }
    if heads and "heads" in key and _is_integer(value) and value % divisor == 0:
        return value // divisor
    if any(word in key for word in _NO_WIDTHS):
        return value
    if isinstance(value, list | tuple):
        whole = value and all(_is_integer(item) and item % divisor == 0 for item in value)
        return [item // divisor for item in value] if whole and sum(value) >= _WIDE else value
    if _is_integer(value) and value >= _WIDE and value % divisor == 0:
        return value // divisor
    return value


def _with_images(value: Any) -> Any:
    """Make each image as small as a few of the patches that its config cuts it into, if it does."""
    if not isinstance(value, Mapping):
        return value
    small = {name: _with_images(item) for name, item in value.items()}
    patch = value.get("patch_size", value.get("tubelet_size"))
    if isinstance(patch, list | tuple):  # of an image, or of a video with frames before the sides
        patch = max(patch, default=None)
    if not _is_integer(patch):
        side = value.get("image_size")
        return small | {"image_size": min(side, _CONVOLVED)} if isinstance(side, int) else small
    for name in ("image_size", "img_size"):
        side = value.get(name)
        if _is_integer(side) and side % patch == 0:
            small[name] = min(side, _PATCHES * patch)
        elif isinstance(side, list | tuple) and all(_is_integer(one) for one in side):
            small[name] = _in_proportion(side, _PATCHES * patch)
    return small


def _in_proportion(sides: Sequence[int], shortest: int) -> list[int]:
    """Make the sides smaller by one number, the shortest no smaller than given."""
    factor = max(min(sides) // shortest, 1)
    return [side // factor for side in sides]


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
