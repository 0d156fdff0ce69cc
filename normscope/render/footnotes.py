"""Sentences that are said once and pointed at by number."""


class Footnotes:
    """Numbers each distinct sentence in order of first use."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def mark(self, sentence: str | None) -> int | None:
        """Return the number of the sentence; None gets none."""
        if sentence is None:
            return None
        return self._numbers.setdefault(sentence, len(self._numbers) + 1)

    @property
    def sentences(self) -> tuple[str, ...]:
        """The sentences in the order of their numbers."""
        return tuple(self._numbers)


def marked(text: str, number: int | None) -> str:
    """Return `text (1)`, or the text alone."""
    return text if number is None else f"{text} ({number})"
