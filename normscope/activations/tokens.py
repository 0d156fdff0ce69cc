"""Token streams of one batch after another -> the list of tokens that are reported."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

from normscope.activations.layouts import Extent
from normscope.activations.streams import TokenStream
from normscope.statistics import InputFacts, Token

Labeller = Callable[[int], tuple[str | None, bool]]
"""Token id -> its text, if known, and whether it is special."""


def unlabelled(_number: int) -> tuple[str | None, bool]:
    """Know nothing of any token."""
    return None, False


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedTokens:
    """Which positions of one batch of tokens are reported."""

    extent: Extent
    counted: torch.Tensor
    """[batch, sequence] booleans: neither padding nor left out."""


@dataclass(slots=True, kw_only=True)
class TokenList:
    """The tokens that were read and not yet taken, by stream, and how many there were of what."""

    label: Labeller = unlabelled
    exclude_special: bool = False
    waiting: dict[str, list[Token]] = field(default_factory=dict)
    sequences: int = 0
    counted: int = 0
    padding: int = 0
    special: int = 0

    def add(
        self, streams: list[TokenStream], sequences: int, numbers: Sequence[int] | None = None
    ) -> dict[str, CountedTokens]:
        """List the tokens of one batch and return which positions they stand at.

        `numbers` says which sequences of the input these are; without it, the next ones.
        """
        if numbers is None:
            numbers = range(self.sequences, self.sequences + sequences)
        counted = {stream.name: self._counted(stream, numbers) for stream in streams}
        self.sequences += sequences
        return counted

    def _counted(self, stream: TokenStream, numbers: Sequence[int]) -> CountedTokens:
        counted = stream.real.clone()
        listed = self.waiting.setdefault(stream.name, [])
        ids = None if stream.ids is None else stream.ids.tolist()
        for row, real in enumerate(stream.real.tolist()):
            columns = [column for column, kept in enumerate(real) if kept]
            for position, column in enumerate(columns):
                number = None if ids is None else int(ids[row][column])
                token = self._token(stream.name, numbers[row], position, number)
                self.special += token.special
                if token.special and self.exclude_special:
                    counted[row, column] = False
                else:
                    listed.append(token)
                    self.counted += 1
        self.padding += int((~stream.real).sum())
        return CountedTokens(extent=stream.extent, counted=counted)

    def _token(self, stream: str, sequence: int, position: int, number: int | None) -> Token:
        text, special = (None, False) if number is None else self.label(number)
        return Token(
            sequence=sequence,
            position=position,
            id=number,
            text=text,
            special=special,
            stream=stream,
        )

    def taken(self) -> tuple[tuple[Token, ...], dict[str, np.ndarray]]:
        """Return what waits in the order of the input, and the order of each stream's entries."""
        tokens: list[Token] = []
        orders: dict[str, np.ndarray] = {}
        for stream, waiting in self.waiting.items():
            numbers = np.array([token.sequence for token in waiting], dtype=np.int64)
            orders[stream] = np.argsort(numbers, kind="stable")
            tokens += [waiting[index] for index in orders[stream].tolist()]
            waiting.clear()
        return tuple(tokens), orders

    def facts(self) -> InputFacts:
        """Return how many there were of what."""
        return InputFacts(
            sequences=self.sequences,
            tokens=self.counted,
            padding=self.padding,
            special=self.special,
            special_left_out=self.exclude_special,
        )
