"""How a model is loaded, as it is typed."""

from normscope.cli.sizes import read_size


def read_memory(text: str | None) -> int | None:
    """Return the bytes of `--max-memory`, None for nothing typed; raises `UsageError`."""
    return None if text is None else read_size(text, "--max-memory")
