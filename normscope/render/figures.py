"""Numbers as people read them."""

from collections.abc import Iterable, Iterator

_UNITS = ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "K"))


def human_count(count: int) -> str:
    """Return a count with three digits and its unit: 6.61B, 109M, 65.8K."""
    for size, unit in _UNITS:
        if count >= 0.9995 * size:
            return f"{count / size:.3g}{unit}"
    return str(count)


def human_bytes(count: int) -> str:
    """Return a size with three digits and its unit: 90.9 MB, 11.4 KB, 12 bytes."""
    text = human_count(count)
    number, unit = text.rstrip("TBMK"), text[len(text.rstrip("TBMK")) :]
    return f"{number} {'GB' if unit == 'B' else f'{unit}B'}" if unit else counted(count, "byte")


def index_ranges(indices: Iterable[int]) -> str:
    """Return indices as ranges: `0, 2-11`."""
    return ", ".join(
        str(first) if first == last else f"{first}-{last}" for first, last in _runs(indices)
    )


def _runs(indices: Iterable[int]) -> Iterator[tuple[int, int]]:
    first = last = None
    for index in sorted(set(indices)):
        if first is not None and last is not None and index != last + 1:
            yield first, last
            first = index
        first = index if first is None else first
        last = index
    if first is not None and last is not None:
        yield first, last


def counted(count: int, noun: str) -> str:
    """Return `1 block`, `12 blocks`, `1,200 tokens`."""
    return f"{count} {noun}" if count == 1 else f"{count:,} {noun}s"


def one_of(words: Iterable[str]) -> str:
    """Return `a`, `a or b`, `a, b or c`."""
    return _joined(tuple(words), "or")


def all_of(words: Iterable[str]) -> str:
    """Return `a`, `a and b`, `a, b and c`."""
    return _joined(tuple(words), "and")


def _joined(words: tuple[str, ...], last: str) -> str:
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} {last} {words[-1]}"
