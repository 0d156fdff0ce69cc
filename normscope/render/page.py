"""Styled lines -> text for one page: a terminal, a pipe or a file."""

import io
from collections.abc import Iterable
from dataclasses import dataclass

from rich.console import Console
from rich.text import Text

from normscope.render.inert import inert_line


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Where a text will be read."""

    width: int | None = None
    """Columns; None for a pipe or a file, where every line is as long as it needs."""
    color: bool = False
    ascii_only: bool = False
    """Whether drawings must do without box characters; other text is written as escapes then."""


PLAIN = Page()


def to_text(lines: Iterable[Text], page: Page) -> str:
    """Return the lines as one text that ends in a newline; no lines give no text.

    The lines are laid out already: nothing is wrapped, cut or read as markup here. What would
    steer a terminal or a pipeline is written as an escape, and its line loses its styles.
    """
    if not page.color:
        return "".join(f"{inert_line(line.plain.rstrip())}\n" for line in lines)
    target = io.StringIO()
    console = Console(
        file=target,
        force_terminal=True,
        color_system="standard",
        no_color=False,
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
    )
    for line in lines:
        line.rstrip()
        shown = inert_line(line.plain)
        console.print(line if shown == line.plain else Text(shown), soft_wrap=True)
    return target.getvalue()
