"""The option types that commands share, each with its help."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Format(StrEnum):
    """How results are written."""

    TABLE = "table"
    JSON = "json"
    JSONL = "jsonl"
    MARKDOWN = "markdown"


class Dtype(StrEnum):
    """A floating-point type that a model can be built in."""

    FLOAT32 = "float32"
    FLOAT16 = "float16"
    BFLOAT16 = "bfloat16"
    FLOAT64 = "float64"


_TARGET_FORMS = (
    "A checkpoint's directory, config.json or .gguf file, org/name[@revision] on the Hub, "
    "type:MODEL_TYPE, demo:pre-norm, demo:post-norm"
)
TARGET_HELP = f"{_TARGET_FORMS}, py:MODULE:FACTORY, or - to read targets from standard input."
ONE_TARGET_HELP = f"{_TARGET_FORMS} or py:MODULE:FACTORY."

Targets = Annotated[list[str], typer.Argument(metavar="TARGET", help=TARGET_HELP)]
FormatOption = Annotated[Format, typer.Option("--format", "-f", help="How results are written.")]
OutputOption = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Write the results to FILE, whole or not at all, instead of stdout.",
    ),
]
RevisionOption = Annotated[
    str | None,
    typer.Option("--revision", help="Branch, tag or commit of a Hub repository."),
]
DtypeOption = Annotated[
    Dtype | None,
    typer.Option("--dtype", help="Build the model in this type instead of the checkpoint's own."),
]
OfflineOption = Annotated[bool, typer.Option("--offline", help="Use no network.")]
TrustOption = Annotated[
    bool,
    typer.Option("--trust-remote-code", help="Run the Python code that comes with the checkpoint."),
]
QuietOption = Annotated[
    bool, typer.Option("--quiet", "-q", help="Write nothing to stderr on success.")
]
VerboseOption = Annotated[
    bool,
    typer.Option("--verbose", "-v", help="Show every assumption and warning, and tracebacks."),
]
NoCacheOption = Annotated[
    bool, typer.Option("--no-cache", help="Neither read nor write cached answers.")
]
JobsOption = Annotated[
    int,
    typer.Option("--jobs", "-j", min=1, metavar="N", help="Work on N targets side by side."),
]
TimeoutOption = Annotated[
    float | None,
    typer.Option(
        "--timeout",
        min=0.001,
        metavar="SECONDS",
        help="End the work on a target that takes longer.",
    ),
]
MemoryLimitOption = Annotated[
    str | None,
    typer.Option(
        "--memory-limit",
        metavar="SIZE",
        help="End the work on a target whose process grows larger, like 4GB.",
    ),
]
MaxModulesOption = Annotated[
    int | None,
    typer.Option(
        "--max-modules",
        min=1,
        metavar="N",
        help="Refuse a config that builds more modules. [default: 200000]",
    ),
]
MaxOperationsOption = Annotated[
    int | None,
    typer.Option(
        "--max-operations",
        min=1,
        metavar="N",
        help="Refuse a model whose forward pass takes more operations. [default: 500000]",
    ),
]
