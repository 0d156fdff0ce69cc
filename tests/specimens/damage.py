"""Bytes of a file -> the same with a few things changed, as accident or malice would."""

import random
from collections.abc import Callable

FRAGMENTS = (
    b"\0", b"\xff", b"\xed\xa0\x80", b"\x1b[2J", b"{", b"}", b"[", b"]", b'"', b",", b":", b"\n",
    b"null", b"true", b"-1", b"0", b"1e999", b"NaN", b"Infinity", b"-0.0", b"1" * 30, b"9" * 5000,
    b"18446744073709551615", b"9223372036854775808", b"[" * 2000, b'{"a":' * 2000, b'""',
    b"\\u0000",
    b'"\\ud800"', b"\\", b"../../x", b"/dev/zero", b"a" * 10_000, b"\xef\xbb\xbf",
    b"\xff\xff\xff\xff\xff\xff\xff\x7f", b"\x80\x00\x00\x00\x00\x00\x00\x00", b"\0" * 8,
)  # fmt: skip


def damaged(content: bytes, chance: random.Random) -> bytes:
    """Return the content after one to four changes."""
    for _ in range(chance.randint(1, 4)):
        content = chance.choice(_CHANGES)(content, chance)
    return content


def _place(content: bytes, chance: random.Random) -> int:
    """Return a place, near the beginning as often as anywhere: headers stand there."""
    most = len(content) if chance.random() < 0.5 else min(len(content), 200)
    return chance.randint(0, most)


def _flipped(content: bytes, chance: random.Random) -> bytes:
    place = _place(content, chance)
    if place == len(content):
        return content
    return (
        content[:place] + bytes([content[place] ^ 1 << chance.randint(0, 7)]) + content[place + 1 :]
    )


def _cut(content: bytes, chance: random.Random) -> bytes:
    return content[: _place(content, chance)]


def _without(content: bytes, chance: random.Random) -> bytes:
    place = _place(content, chance)
    return content[:place] + content[place + chance.randint(1, 40) :]


def _with(content: bytes, chance: random.Random) -> bytes:
    place = _place(content, chance)
    return content[:place] + chance.choice(FRAGMENTS) + content[place:]


def _replaced(content: bytes, chance: random.Random) -> bytes:
    place, fragment = _place(content, chance), chance.choice(FRAGMENTS)
    return content[:place] + fragment + content[place + len(fragment) :]


def _twice(content: bytes, chance: random.Random) -> bytes:
    place = _place(content, chance)
    piece = content[place : place + chance.randint(1, 200)]
    return content[:place] + piece + content[place:]


_CHANGES: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    _flipped, _cut, _without, _with, _replaced, _twice,
)  # fmt: skip
