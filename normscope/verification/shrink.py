"""Config -> configs of smaller models of the same code, the smallest first.

Nothing here knows a model: an integer that is the length of a list of blocks becomes a shorter
length, and large integers are divided by one number, so that what divided before divides still.
What does not build or run is for the caller to find out; the next one is less small. The words
below only save vain attempts.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
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
    "size",
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

_INDEXES = ("layer", "block", "index", "indices", "_ids")
"""Words for the numbers of blocks that something is done in."""
_MANY = 512
"""Integers from which on a number is the width of a stream, where that of a head must stay."""

Config = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shrunk:
    """One smaller config, and how it was made."""

    config: Config
    wording: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Widths:
    """How numbers become smaller."""

    divisor: int
    heads: bool = False
    """Whether there are fewer heads too: their size may be fixed by the code."""
    least: int = _WIDE
    """The smallest number that is divided."""
    experts: bool = False
    """Whether there are fewer experts too."""

    @property
    def wording(self) -> str:
        what = "widths and heads" if self.heads else "widths"
        if self.experts:
            what = f"{'widths, heads' if self.heads else 'widths'} and experts"
        return f"{what} over {self.divisor}"


def shrunk_configs(
    config: Config, blocks: Sequence[BlockReport], lists: Iterable[int] = ()
) -> Iterator[Shrunk]:
    """Yield smaller configs of the model whose blocks are known, then the config itself.

    `lists` are the lengths of all its lists of modules, with blocks in them or not.
    """
    lengths = _lengths(blocks)
    few = ", ".join(f"{new} of {old} blocks" for old, new in lengths.items())
    # A list may have one entry a block, or a length that only happens to be the same.
    fewer = [_with_lengths(config, lengths, cut=cut) for cut in (True, False)] if few else [config]
    usual = [_Widths(divisor=each, heads=heads) for each in _DIVISORS for heads in (False, True)]
    yield from _narrowed(fewer, usual, few)
    # What is said of blocks that are gone must be said of others; what is no block may go too.
    every = {length: min(length, _FEWEST) for length in lists} | lengths
    moved = [_with_lengths(_reindexed(config, some), some, cut=True) for some in (lengths, every)]
    yield from _narrowed(moved[:1], usual, few)
    yield from _narrowed(moved, list(_last_resorts()), few)
    yield from (Shrunk(config=one, wording=few) for one in fewer if few)
    yield Shrunk(config=config, wording="the whole model")


def _last_resorts() -> Iterator[_Widths]:
    for divisor in _DIVISORS[::2]:
        for heads in (False, True):
            for least in (_WIDE, _MANY):
                yield _Widths(divisor=divisor, heads=heads, least=least, experts=True)


def _narrowed(bases: Sequence[Config], widths: Sequence[_Widths], few: str) -> Iterator[Shrunk]:
    for how in widths:
        wording = f"{few}, {how.wording}".removeprefix(", ")
        for base in bases:
            config = _with_widths(base, how)
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


def _reindexed(value: Any, lengths: Mapping[int, int], key: str = "") -> Any:
    """Let lists of blocks' numbers, and single ones, name blocks that are still there."""
    if isinstance(value, Mapping):
        return {name: _reindexed(item, lengths, str(name)) for name, item in value.items()}
    if (
        not any(word in key for word in _INDEXES)
        or "num" in key
        or (_is_integer(value) and value in lengths)
    ):
        return value
    numbers = list(value) if isinstance(value, list | tuple) else [value]
    if not all(map(_is_integer, numbers)) or not numbers:
        return value
    furthest = max(number if number >= 0 else -number - 1 for number in numbers)
    depth = min((old for old in lengths if old > furthest), default=None)
    if depth is None or furthest < lengths[depth]:
        return value
    moved = [_moved(number, depth, lengths[depth]) for number in numbers]
    return list(dict.fromkeys(moved)) if isinstance(value, list | tuple) else moved[0]


def _moved(number: int, old: int, new: int) -> int:
    """Return the number of the block as deep among the new ones, the first and last included."""
    if number < 0:  # counted from the end: the last ones stay
        return max(number, -new)
    return round(number * (new - 1) / (old - 1))


def _with_widths(value: Any, how: _Widths, key: str = "") -> Any:
    if isinstance(value, Mapping):
        if any(_is_integer(name) or name.isdecimal() for name in value):
            return value  # by index of a block: derived, or not for every length
        return {name: _with_widths(item, how, str(name)) for name, item in value.items()}
    divides = _is_integer(value) and value % how.divisor == 0
    if how.heads and "heads" in key and divides:
        return value // how.divisor
    if how.experts and "experts" in key and divides and value >= _WIDE:
        return value // how.divisor
    if any(word in key for word in _NO_WIDTHS):
        return value
    if isinstance(value, list | tuple):
        whole = value and all(_is_integer(item) and item % how.divisor == 0 for item in value)
        return (
            [item // how.divisor for item in value] if whole and sum(value) >= how.least else value
        )
    return value // how.divisor if divides and value >= how.least else value


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
