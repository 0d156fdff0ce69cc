"""Token streams of one batch after another -> the list of tokens that are reported."""

from collections.abc import Callable
from dataclasses import dataclass, field

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
    """The tokens so far, by stream."""

    label: Labeller = unlabelled
    exclude_special: bool = False
    listed: dict[str, list[Token]] = field(default_factory=dict)
    sequences: int = 0
    padding: int = 0
    special: int = 0

    def add(self, streams: list[TokenStream], sequences: int) -> dict[str, CountedTokens]:
        """List the tokens of one batch and return which positions they stand at."""
        counted = {stream.name: self._counted(stream) for stream in streams}
        self.sequences += sequences
        return counted

    def _counted(self, stream: TokenStream) -> CountedTokens:
        counted = stream.real.clone()
        listed = self.listed.setdefault(stream.name, [])
        for row, real in enumerate(stream.real.tolist()):
            columns = [column for column, kept in enumerate(real) if kept]
            for position, column in enumerate(columns):
                token = self._token(stream, row, column, position)
                self.special += token.special
                if token.special and self.exclude_special:
                    counted[row, column] = False
                else:
                    listed.append(token)
        self.padding += int((~stream.real).sum())
        return CountedTokens(extent=stream.extent, counted=counted)

    def _token(self, stream: TokenStream, row: int, column: int, position: int) -> Token:
        number = None if stream.ids is None else int(stream.ids[row, column])
        text, special = (None, False) if number is None else self.label(number)
        return Token(
            sequence=self.sequences + row,
            position=position,
            id=number,
            text=text,
            special=special,
            stream=stream.name,
        )

    def tokens(self) -> tuple[Token, ...]:
        """Return all tokens, one stream after the other."""
        return tuple(token for stream in self.listed.values() for token in stream)

    def facts(self) -> InputFacts:
        """Return how many there were of what."""
        return InputFacts(
            sequences=self.sequences,
            tokens=len(self.tokens()),
            padding=self.padding,
            special=self.special,
        )
