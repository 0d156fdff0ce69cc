"""Norms, tokens and numbers, as findings write them."""

from collections.abc import Sequence

from normscope.statistics import NormStatistics, Statistics, Token

_MOST_IN_FULL = 1e7
"""A number beyond is told by its exponent."""


def place_of(norm: NormStatistics) -> str:
    """Return the block that a norm stands in, or the norm itself."""
    return norm.block or norm.name


def span_in_words(first: NormStatistics, last: NormStatistics) -> str:
    """Return from which block to which something is seen."""
    if first.name == last.name:
        return f"seen before {first.name} alone"
    return f"from {place_of(first)} to {place_of(last)}"


def token_at(statistics: Statistics, norm: NormStatistics, index: int) -> Token | None:
    """Return the token of an entry, None where rows are no tokens."""
    tokens = statistics.tokens_of(norm)
    return tokens[index] if index < len(tokens) else None


def tokens_in_words(statistics: Statistics, norm: NormStatistics, tokens: Sequence[int]) -> str:
    """Return the first of some entries, and how many more there are.

    Of a run that is only summarized not all of them are known.
    """
    different = sorted(set(tokens))
    first = entry_in_words(statistics, norm, different[0])
    if len(different) == 1:
        return first
    least = "at least " if norm.kept is not None else ""
    return f"{first} and {least}{len(different) - 1} more"


def entry_in_words(statistics: Statistics, norm: NormStatistics, index: int) -> str:
    """Return the token that an entry belongs to; `row 3` where rows are no tokens."""
    tokens = statistics.tokens_of(norm)
    if index >= len(tokens):
        return f"row {index if norm.kept is None else norm.kept.places[index]}"
    return token_in_words(tokens[index], several=statistics.input.sequences > 1)


def token_in_words(token: Token, *, several: bool) -> str:
    """Return `token 0 "[CLS]"`, with its sequence where there are several."""
    named = f"token {token.position}" + (f' "{token.text}"' if token.text is not None else "")
    side = f" of the {token.stream}" if token.stream else ""
    return named + side + (f" of sequence {token.sequence}" if several else "")


def other_norms(count: int) -> str:
    """Return `1 other norm`, `12 other norms`."""
    return "1 other norm" if count == 1 else f"{count} other norms"


def rounded(value: float) -> str:
    """Return a number with three digits, or whole where it has up to seven."""
    if value > _MOST_IN_FULL:
        return f"{value:.3g}"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
