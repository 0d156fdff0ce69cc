"""Text from outside -> text that a terminal shows as it is."""

import unicodedata

_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Categories that steer a terminal, hide, or reorder text instead of being seen."""
_MOST = 10_000
"""Characters of one name or message; a stranger's may have a million, in every row of a table."""


def visible(text: str) -> str:
    r"""Write every control, format and undefined character of `text` as an escape (`\x1b`).

    Of a text that no one would read to its end, the beginning is shown.
    """
    return unhidden(shortened(text, _MOST))


def shortened(text: str, most: int) -> str:
    """Return the first characters of a text, with how many it has where those are not all."""
    return text if len(text) <= most else f"{text[:most]}… ({len(text):,} characters)"


def unhidden(text: str) -> str:
    """Return a text of any length with the same escapes."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_escaped(character) for character in text)


def _escaped(character: str) -> str:
    if unicodedata.category(character) not in _HIDDEN:
        return character
    code = ord(character)
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
