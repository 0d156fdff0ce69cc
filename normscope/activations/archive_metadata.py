"""What a safetensors file says of its tensors: norms, tokens and versions; knows no torch."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from normscope.activations.chunks import Chunk
from normscope.statistics import NormStatistics, Token

_MOST_LISTED = 1 << 16
"""Tokens that are described one by one: a header may not be larger than 100 MB."""


@dataclass(slots=True)
class TokenIndex:
    """The tokens of a run one by one, or beyond a limit the text of each id."""

    listed: list[Token] | None = field(default_factory=list)
    texts: dict[int, str | None] = field(default_factory=dict)
    special: set[int] = field(default_factory=set)
    _of_listed: int = 0
    _of_texts: int = 0
    """Bytes that they take in the file at most."""

    @property
    def most_bytes(self) -> int:
        """Return how many bytes the tokens take at most."""
        return self._of_texts if self.listed is None else self._of_listed

    def add(self, tokens: Sequence[Token]) -> None:
        """Take note of further tokens."""
        for token in tokens:
            if token.id is not None:
                if self.texts.get(token.id, "") != token.text:
                    self._of_texts += _most_of_token(token)
                self.texts[token.id] = token.text
                if token.special:
                    self.special.add(token.id)
        if self.listed is not None:
            self.listed = self.listed + list(tokens)
            self._of_listed += sum(map(_most_of_token, tokens))
            if len(self.listed) > _MOST_LISTED:
                self.listed = None


def most_bytes(chunk: Chunk, tokens: TokenIndex) -> int:
    """Return how many bytes the description of a run takes at most that goes on with `chunk`."""
    fixed = [chunk.subject.target, *chunk.subject.versions.values(), chunk.subject.model.dtype]
    norms = sum(
        _OF_A_NORM + _OF_A_CHARACTER * (10 * len(norm.name) + len(norm.problem or ""))
        for norm in chunk.norms
    )
    fresh = sum(map(_most_of_token, chunk.tokens))
    return (1 << 14) + _OF_A_CHARACTER * sum(map(len, fixed)) + norms + tokens.most_bytes + fresh


def _most_of_token(token: Token) -> int:
    return _OF_A_TOKEN + _OF_A_CHARACTER * (len(token.text or "") + len(token.stream))


_OF_A_CHARACTER = 14
"""An escaped pair of surrogates, in JSON within JSON."""
_OF_A_TOKEN = 256
_OF_A_NORM = 4096
"""Ten tensors with their names, shapes and places."""


def archive_metadata(chunk: Chunk, tokens: TokenIndex) -> dict[str, object]:
    """Return the metadata of a run that ended with `chunk`."""
    metadata: dict[str, object] = {
        "schema": "normscope.statistics/1",
        "target": chunk.subject.target,
        "versions": dict(chunk.subject.versions),
        "dtype": chunk.subject.model.dtype,
        "norms": [_norm(norm) for norm in chunk.norms],
        "tokens": None,
    }
    if tokens.listed is not None:
        metadata["tokens"] = [_token(token) for token in tokens.listed]
    else:
        metadata["texts"] = {str(number): text for number, text in sorted(tokens.texts.items())}
        metadata["special_ids"] = sorted(tokens.special)
    return metadata


def _norm(norm: NormStatistics) -> dict[str, object]:
    return {
        "name": norm.name,
        "call": norm.call,
        "role": norm.role.value,
        "kind": norm.kind,
        "stream": norm.stream,
        "rows_per_token": norm.rows_per_token,
        "rows": norm.rows,
        "problem": norm.problem,
        "in_table": norm.rows_per_token == 1 and norm.problem is None,
    }


def _token(token: Token) -> dict[str, object]:
    return {
        "sequence": token.sequence,
        "position": token.position,
        "id": token.id,
        "text": token.text,
        "special": token.special,
        "stream": token.stream,
    }
