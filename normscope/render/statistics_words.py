"""Tokens, norms and numbers of statistics, as the views write them."""

import math

from normscope.inspection import ModelFacts
from normscope.render.figures import counted, human_count
from normscope.render.visible import shortened, visible
from normscope.statistics import NormStatistics, Statistics, Token

_LONGEST = 200
"""Characters of a token's text; vocabularies hold runs of blanks and dashes of up to 128."""


def figure(value: float) -> str:
    """Return a number with three digits: 0.0048, 127, 894,000, 5.43e-4, 3.1e9."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("inf" if value > 0 else "-inf")
    rounded = float(f"{value:.3g}")
    size = abs(rounded)
    if size and not 1e-3 <= size < 1e7:
        digits, _, exponent = f"{value:.2e}".partition("e")
        return f"{float(digits):g}e{int(exponent)}"
    return f"{rounded:,.0f}" if size >= 1000 else f"{value:.3g}"


def token_label(token: Token, *, several: bool) -> str:
    """Return `0 "[CLS]"`, and `1:0 "[CLS]"` where there are several sequences."""
    place = f"{token.sequence}:{token.position}" if several else str(token.position)
    if token.text is not None:
        return f'{place} "{visible(shortened(token.text, _LONGEST))}"'
    return place if token.id is None else f"{place} #{token.id}"


def entry_labels(statistics: Statistics, norm: NormStatistics) -> tuple[str, ...]:
    """Return what each entry of a norm belongs to: its tokens, or the numbers of its rows."""
    if norm.rows_per_token is None:
        count = len(norm.before.variance) if norm.before is not None else 0
        places = range(count) if norm.kept is None else norm.kept.places
        return tuple(f"row {index}" for index in places)
    several = statistics.input.sequences > 1
    return tuple(token_label(token, several=several) for token in statistics.tokens_of(norm))


def norm_title(norm: NormStatistics) -> str:
    """Return the name of a norm call, with its number where it is not the first."""
    return visible(norm.name) + (f" (call {norm.call})" if norm.call else "")


def rows_remark(norm: NormStatistics) -> str:
    """Say what the entries of a norm are where they are not one row a token, else ""."""
    if norm.problem is not None:
        return visible(norm.problem)
    if norm.rows_per_token is None:
        return f"its rows are no tokens: {visible(norm.rows or 'unknown')}"
    return f"mean over {norm.rows_per_token} rows a token" if norm.rows_per_token > 1 else ""


def heading_words(statistics: Statistics) -> tuple[str, str]:
    """Return what was measured, and on what."""
    return _model_words(statistics.model, statistics), _input_words(statistics)


def _model_words(model: ModelFacts, statistics: Statistics) -> str:
    size = f"{human_count(model.parameters)} parameters"
    return f"{size}, {statistics.dtype}, {statistics.device}"


def _input_words(statistics: Statistics) -> str:
    facts = statistics.input
    pieces = [counted(facts.sequences, "sequence")]
    if facts.tokens:
        among = facts.special and not facts.special_left_out
        special = f" ({facts.special:,} special)" if among else ""
        pieces.append(counted(facts.tokens, "token") + special)
    if facts.special and facts.special_left_out:
        pieces.append(f"{counted(facts.special, 'special token')} left out")
    if facts.padding:
        pieces.append(f"{facts.padding:,} of padding left out")
    if statistics.left_out is not None:
        error = f"{statistics.left_out.quantile_error:.1%}"
        pieces.append(f"summarized: median and p99 to {error}, all else exact")
    return ", ".join(pieces)
