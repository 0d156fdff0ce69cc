"""Every golden text: the name of its file, and what is written into it."""

from collections.abc import Iterator
from pathlib import Path

from golden.inspections import DRAWN, EVERY, bert, deepseek, hostile, llama
from golden.verified import agreeing, contradicted, without_copy
from normscope.errors import FailureKind
from normscope.inspection import Uninspectable
from normscope.render.blocks import render_blocks
from normscope.render.diagram import render_diagram
from normscope.render.documents import render_json, render_json_line
from normscope.render.explain import render_explanation
from normscope.render.markdown import (
    render_markdown,
    render_markdown_blocks,
    render_markdown_diagram,
    render_markdown_explanation,
    render_markdown_norms,
    render_markdown_overview,
)
from normscope.render.norms import render_norms
from normscope.render.overview import render_overview
from normscope.render.page import PLAIN, Page
from normscope.render.table import render_table
from normscope.render.verification import render_verification
from normscope.render.verification_markdown import render_markdown_verification

FOLDER = Path(__file__).parent
TERMINAL = Page(width=80)
COLORED = Page(width=80, color=True)

FAILURE = Uninspectable(
    target="./broken",
    kind=FailureKind.NO_CONFIG,
    message="there is no config.json in this directory",
    hint="name a checkpoint's directory",
)


def golden_texts() -> Iterator[tuple[str, str]]:
    """Yield the file name and the text of each golden file."""
    for name, made in {**EVERY, "hostile": hostile()}.items():
        yield f"{name}.table.80.txt", render_table(made, TERMINAL)
        yield f"{name}.table.pipe.txt", render_table(made, PLAIN)
        yield f"{name}.norms.80.txt", render_norms(made, TERMINAL)
        yield f"{name}.md", render_markdown(made)
    yield from _details()
    yield from _diagrams()
    yield from _comparisons()
    yield from _verified()
    yield "llama-2.json", render_json(llama(depth=2))
    yield "hostile.jsonl", render_json_line(hostile())
    yield "failure.jsonl", render_json_line(FAILURE)


def _details() -> Iterator[tuple[str, str]]:
    moe, first = deepseek(), bert()
    yield "deepseek_v3.verbose.80.txt", render_table(moe, TERMINAL, verbose=True)
    yield "llama.table.color.txt", render_table(llama(), COLORED)
    for name in ("bert", "swin"):
        yield f"{name}.blocks.80.txt", render_blocks(EVERY[name], TERMINAL)
        yield f"{name}.blocks.pipe.txt", render_blocks(EVERY[name], PLAIN)
        yield f"{name}.norms.pipe.txt", render_norms(EVERY[name], PLAIN)
        yield f"{name}.blocks.md", render_markdown_blocks(EVERY[name])
        yield f"{name}.norms.md", render_markdown_norms(EVERY[name])
    yield "bert.explain.80.txt", render_explanation(first, first.blocks[0], TERMINAL)
    yield "bert.explain.pipe.txt", render_explanation(first, first.blocks[0], PLAIN)
    yield "bert.explain.md", render_markdown_explanation(first, first.blocks[0])


def _diagrams() -> Iterator[tuple[str, str]]:
    for name, made in DRAWN.items():
        yield f"{name}.diagram.80.txt", render_diagram(made, TERMINAL)
    for name in ("odd", "wav2vec2-conformer"):
        narrow = Page(width=80, ascii_only=True)
        yield f"{name}.diagram.ascii.80.txt", render_diagram(DRAWN[name], narrow)
    yield "gemma2.diagram.pipe.txt", render_diagram(DRAWN["gemma2"], PLAIN)
    yield "gemma2.diagram.40.txt", render_diagram(DRAWN["gemma2"], Page(width=40))
    yield "gptj.diagram.md", render_markdown_diagram(DRAWN["gptj"])


def _verified() -> Iterator[tuple[str, str]]:
    made = {"llama": agreeing(), "bert": contradicted(), "uncopied": without_copy()}
    for name, one in made.items():
        yield f"{name}.verified.80.txt", render_verification(one, TERMINAL)
        yield f"{name}.verified.md", render_markdown_verification(one)
    yield "bert.verified.pipe.txt", render_verification(made["bert"], PLAIN)
    yield "verified.overview.80.txt", render_overview([*made.values(), FAILURE], TERMINAL)
    yield "verified.overview.md", render_markdown_overview([*made.values(), FAILURE])
    yield "llama-2.verified.json", render_json(made["llama"])


def _comparisons() -> Iterator[tuple[str, str]]:
    three = [EVERY["llama"], EVERY["bert"], EVERY["gemma2"], FAILURE]
    everything = [*EVERY.values(), hostile(), FAILURE]
    yield "three.overview.80.txt", render_overview(three, TERMINAL)
    yield "every.overview.80.txt", render_overview(everything, TERMINAL)
    yield "every.overview.pipe.txt", render_overview(everything, PLAIN)
    yield "every.overview.md", render_markdown_overview(everything)
