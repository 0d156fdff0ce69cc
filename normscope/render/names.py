"""Module paths as the views show them: relative to their block, numbered siblings as one."""

from collections.abc import Iterable, Iterator

from normscope.render.figures import index_ranges
from normscope.render.visible import visible


def within_block(name: str, block: str) -> str:
    """Return `name` relative to `block`.

    What the block's own forward writes out is `self:RMSNorm`. What the next block of the list
    begins with is `next block's input_layernorm`. A module that stands elsewhere keeps its path,
    with `*` in place of the block's number.
    """
    if name.startswith(f"{block}."):
        return visible(name[len(block) + 1 :])
    if name.startswith(f"{block}:"):
        return visible(f"self{name[len(block) :]}")
    stack, _, number = block.rpartition(".")
    if not number.isdecimal():
        return visible(name)
    following = f"{stack}.{int(number) + 1}".lstrip(".")
    if name.startswith((f"{following}.", f"{following}:")):
        return f"next block's {within_block(name, following)}"
    return visible(".".join("*" if part == number else part for part in name.split(".")))


def siblings_as_one(names: Iterable[str]) -> tuple[str, ...]:
    """Join names that differ in one number: `norms.0-31`; in order of first appearance.

    Of names that differ in several numbers, those are joined that differ in the last one only.
    """
    alike: dict[tuple[str, ...], list[tuple[str, ...]]] = {}
    for name in names:
        parts = tuple(name.split("."))
        alike.setdefault(tuple("#" if p.isdecimal() else p for p in parts), []).append(parts)
    return tuple(joined for members in alike.values() for joined in _joined(members))


def _joined(members: list[tuple[str, ...]]) -> Iterator[str]:
    """Join names of one form at the last place where they differ."""
    differing = [n for n, column in enumerate(zip(*members, strict=True)) if len(set(column)) > 1]
    if not differing:
        yield ".".join(members[0])
        return
    place = differing[-1]
    numbers: dict[tuple[tuple[str, ...], tuple[str, ...]], list[int]] = {}
    for parts in members:
        numbers.setdefault((parts[:place], parts[place + 1 :]), []).append(int(parts[place]))
    for (before, after), found in numbers.items():
        yield ".".join((*before, index_ranges(found), *after))
