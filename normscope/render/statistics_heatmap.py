"""Statistics -> a picture of norms by tokens: variance on a log scale, in characters and colour."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.text import Text

from normscope.render.grid import paragraph
from normscope.render.page import Page, to_text
from normscope.render.statistics_summary import heading_lines, spaced
from normscope.render.statistics_words import figure, norm_title, token_label
from normscope.render.styles import PATH, QUIET
from normscope.statistics import NormStatistics, Statistics, greatest, summarize

_SHADES = ".:-=+*%@"
_STYLES = ("blue", "cyan", "cyan", "green", "green", "yellow", "yellow", "red")
_OUTLIER, _OUTLIER_STYLE = "!", "bold white on red"
_OUTLYING = 100.0
"""Times the norm's median token."""
_INDENT = 2
_FEWEST_COLUMNS = 16
_WIDEST_CELL = 3
_MOST_MARKED = 40
"""Tokens that are named where not all are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scale:
    low: float
    high: float

    def level(self, value: float) -> int:
        """Return the shade of a value, or -1 for one that has none."""
        if not (math.isfinite(value) and value > 0):
            return 0 if value == 0 else -1
        if self.high <= self.low:
            return len(_SHADES) // 2
        share = math.log(value / self.low) / math.log(self.high / self.low)
        return min(len(_SHADES) - 1, max(0, int(share * len(_SHADES))))

    def edges(self) -> Iterator[float]:
        """Yield the least value of each shade."""
        step = (self.high / self.low) ** (1 / len(_SHADES)) if self.low else 1.0
        for index in range(len(_SHADES)):
            yield self.low * step**index


def render_statistics_heatmap(statistics: Statistics, page: Page) -> str:
    """Return one row a norm and one column a token (or a few tokens) of the variance before it."""
    norms = [norm for norm in statistics.norms if _has_tokens(norm)]
    streams = list(dict.fromkeys(norm.stream for norm in norms))
    pictures = [
        _picture([norm for norm in norms if norm.stream == stream], statistics, page)
        for stream in streams
    ]
    if not pictures:
        pictures = [paragraph("no norm has rows that are tokens", width=page.width, indent=_INDENT)]
    return to_text(spaced([heading_lines(statistics, page), *pictures]), page)


def _has_tokens(norm: NormStatistics) -> bool:
    return norm.before is not None and norm.rows_per_token is not None


def _picture(norms: Sequence[NormStatistics], statistics: Statistics, page: Page) -> list[Text]:
    tokens = statistics.tokens_of(norms[0])
    names, prefix = _names(norms, len(tokens), page)
    margin = max(cell_len(name) for name in names)
    room = _room(margin, page)
    per_column = _tokens_per_column(len(tokens), room)
    width = _cell_width(math.ceil(len(tokens) / per_column), room)
    scale = _scale_of(norms)
    heading = "variance before each norm, by token"
    if norms[0].stream:
        heading += f" of the {norms[0].stream}"
    if per_column > 1:
        heading += f" (the largest of {per_column} tokens a column)"
    if prefix:
        heading += f"; the names begin with {prefix}"
    return [
        *paragraph(heading, width=page.width, indent=_INDENT, style=PATH),
        Text(" " * (_INDENT + margin + 2) + _ruler(len(tokens), per_column, width), style=QUIET),
        *(
            _row(name, norm, scale, margin=margin, per_column=per_column, width=width)
            for name, norm in zip(names, norms, strict=True)
        ),
        *_legend(scale, page),
        *_token_lines(_named_tokens(norms, len(tokens), per_column), statistics, norms[0], page),
    ]


def _names(norms: Sequence[NormStatistics], tokens: int, page: Page) -> tuple[list[str], str]:
    """Return the names, without the path that all share where tokens lack the room."""
    names = [norm_title(norm) for norm in norms]
    room = _room(max(cell_len(name) for name in names), page)
    shared = _shared_path(names)
    if room is None or tokens <= room or not shared:
        return names, ""
    return [name.removeprefix(shared) for name in names], shared


def _shared_path(names: Sequence[str]) -> str:
    """Return the path that all names begin with, up to its last dot."""
    first, *others = (name.split(".")[:-1] for name in names)
    count = 0
    while (
        count < len(first) and others and all(o[: count + 1] == first[: count + 1] for o in others)
    ):
        count += 1
    return "".join(f"{piece}." for piece in first[:count])


def _room(margin: int, page: Page) -> int | None:
    return None if page.width is None else page.width - margin - _INDENT - 2


def _named_tokens(norms: Sequence[NormStatistics], tokens: int, per_column: int) -> list[int]:
    """Return all tokens; where they share columns, those that are marked in some row."""
    if per_column == 1:
        return list(range(tokens))
    return sorted({index for norm in norms for index in _marked(norm)})


def _marked(norm: NormStatistics) -> Iterator[int]:
    values = norm.before.variance if norm.before is not None else ()
    usual = summarize(values).median
    for index, value in enumerate(values):
        if not math.isfinite(value) or (usual > 0 and value > _OUTLYING * usual):
            yield index


def _tokens_per_column(tokens: int, room: int | None) -> int:
    if room is None:
        return 1
    return max(1, math.ceil(tokens / max(room, _FEWEST_COLUMNS)))


def _cell_width(columns: int, room: int | None) -> int:
    """Few tokens get wider cells."""
    if room is None or not columns:
        return 1
    return max(1, min(_WIDEST_CELL, room // columns))


def _scale_of(norms: Sequence[NormStatistics]) -> _Scale:
    values = [
        value
        for norm in norms
        if norm.before is not None
        for value in norm.before.variance
        if math.isfinite(value) and value > 0
    ]
    return _Scale(low=min(values, default=1.0), high=max(values, default=1.0))


def _row(
    name: str, norm: NormStatistics, scale: _Scale, *, margin: int, per_column: int, width: int
) -> Text:
    line = Text(" " * _INDENT + name + " " * (margin - cell_len(name) + 2))
    values = norm.before.variance if norm.before is not None else ()
    usual = summarize(values).median
    for start in range(0, len(values), per_column):
        value = greatest(values[start : start + per_column])
        character, style = _shade(value, usual, scale)
        line.append(character * width, style=style)
    return line


def _shade(value: float, usual: float, scale: _Scale) -> tuple[str, str]:
    level = scale.level(value)
    if level < 0:
        return "?", _OUTLIER_STYLE
    if usual > 0 and value > _OUTLYING * usual:
        return _OUTLIER, _OUTLIER_STYLE
    return _SHADES[level], _STYLES[level]


def _ruler(tokens: int, per_column: int, width: int) -> str:
    """Number the columns by their first token, as densely as the numbers fit."""
    columns = math.ceil(tokens / per_column)
    line = ""
    for column in range(columns):
        label = str(column * per_column)
        place = column * width
        if place >= len(line) + (1 if line else 0) and _is_round(column, width):
            line += " " * (place - len(line)) + label
    return line


def _is_round(column: int, width: int) -> bool:
    step = 5 if width > 1 else 10
    return column % step == 0


def _legend(scale: _Scale, page: Page) -> list[Text]:
    shades = [
        f"{character} from {figure(edge)}"
        for character, edge in zip(_SHADES, scale.edges(), strict=True)
    ]
    outlier = f"{_OUTLIER} over {_OUTLYING:.0f} times the norm's median token"
    return _packed([*shades, outlier], page, style=QUIET)


def _token_lines(
    named: Sequence[int], statistics: Statistics, norm: NormStatistics, page: Page
) -> list[Text]:
    """Name tokens by their number along the columns."""
    tokens = statistics.tokens_of(norm)
    several = statistics.input.sequences > 1
    every = len(named) == len(tokens)
    shown = named if every else named[:_MOST_MARKED]
    labels = [
        (f"{index}=" if several else "") + token_label(tokens[index], several=several)
        for index in shown
    ]
    if len(shown) < len(named):
        labels.append(f"and {len(named) - len(shown):,} more")
    return _packed(["tokens:" if every else "marked tokens:", *labels], page) if labels else []


def _packed(pieces: Sequence[str], page: Page, *, style: str = "") -> list[Text]:
    """Set pieces one after the other; none is broken at the end of a line."""
    lines = [" " * _INDENT + pieces[0]]
    for piece in pieces[1:]:
        longer = f"{lines[-1]}  {piece}"
        if page.width is not None and cell_len(longer) > page.width:
            lines.append(" " * 2 * _INDENT + piece)
        else:
            lines[-1] = longer
    return [Text(line, style=style) for line in lines]
