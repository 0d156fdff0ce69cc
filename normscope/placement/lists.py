"""Where a module path lies in the lists of blocks that a model is built from."""

from normscope.graph import Graph


def block_path(graph: Graph, path: str) -> str | None:
    """Return the element of the innermost homogeneous module list around `path`.

    A list is homogeneous if it repeats one class, with few others between; where there is none
    around the path, the element of the innermost list of any kind; None outside of all lists.
    """
    fallback: str | None = None
    for element in _elements_around(graph, path):
        if element.rpartition(".")[0] in graph.repeating_lists:
            return element
        fallback = fallback or element
    return fallback


def homogeneous_elements(graph: Graph, path: str) -> list[str]:
    """Return the elements of homogeneous lists around `path`, innermost first."""
    return [
        element
        for element in _elements_around(graph, path)
        if element.rpartition(".")[0] in graph.repeating_lists
    ]


def stack_path(path: str) -> str:
    """Return the path of the list that a block belongs to, `*` for the stages of a nested list."""
    return pattern(path.rpartition(".")[0])


def pattern(path: str) -> str:
    """Return a module path with `*` in place of each index."""
    return ".".join("*" if part.isdecimal() else part for part in path.split("."))


def is_within(path: str, outer: str) -> bool:
    """Tell whether a module path is `outer` or below it; everything is below the root."""
    return outer == "" or path == outer or path.startswith(f"{outer}.")


def paths_around(path: str) -> list[str]:
    """Return a module path and those that it lies in, innermost first; without the root."""
    parts = path.split(".") if path else []
    return [".".join(parts[:end]) for end in range(len(parts), 0, -1)]


def _elements_around(graph: Graph, path: str) -> list[str]:
    return [
        prefix
        for prefix in paths_around(path)
        if (outer := graph.modules.get(prefix.rpartition(".")[0])) is not None
        and outer.is_list
        and prefix in graph.modules
    ]
