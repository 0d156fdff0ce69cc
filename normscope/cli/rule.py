"""`normscope rule`: a code -> what the rule checks, why it matters and how to mend it."""

from typing import TYPE_CHECKING, Annotated

import typer

from normscope.cli.options import Format, FormatOption, OutputOption
from normscope.cli.output import open_output

if TYPE_CHECKING:  # the help comes before the rules are imported
    from normscope.render.page import Page


def rule(
    code: Annotated[
        str | None, typer.Argument(metavar="[CODE]", help="A code, like NS102; all without it.")
    ] = None,
    output_format: FormatOption = Format.TABLE,
    output: OutputOption = None,
) -> None:
    """Tell what a rule of `audit` checks, why it matters and how to fix what it finds."""
    with open_output(output) as results:
        results.write(_text_of(code, output_format, results.page))


def _text_of(code: str | None, written: Format, page: "Page") -> str:
    from normscope.audit.rules import RULES, required_rule
    from normscope.render.rule_text import rule_in, rules_in

    if code is None:
        return rules_in(written.value, RULES, page)
    return rule_in(written.value, required_rule(code), page)
