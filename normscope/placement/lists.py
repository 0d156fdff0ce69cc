"""Where a module path lies in the lists of blocks that a model is built from."""

from collections import Counter

from normscope.graph import Graph


def block_path(graph: Graph, path: str) -> str | None:
    """Return the element of the innermost homogeneous module list around `path`.

    A list is homogeneous if it repeats one class, with few others between; where there is none
    around the path, the element of the innermost list of any kind; None outside of all lists.
    """
    fallback: str | None = None
    for element in _elements_around(graph, path):
        if _is_homogeneous(graph, element.rpartition(".")[0]):
            return element
        fallback = fallback or element
    return fallback


def homogeneous_elements(graph: Graph, path: str) -> list[str]:
    """Return the elements of homogeneous lists around `path`, innermost first."""
    return [
        element
        for element in _elements_around(graph, path)
        if _is_homogeneous(graph, element.rpartition(".")[0])
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


def _elements_around(graph: Graph, path: str) -> list[str]:
    parts = path.split(".")
    prefixes = [".".join(parts[:end]) for end in range(len(parts), 0, -1)]
    return [
        prefix
        for prefix in prefixes
        if (outer := graph.modules.get(prefix.rpartition(".")[0])) is not None
        and outer.is_list
        and prefix in graph.modules
    ]


def _is_homogeneous(graph: Graph, path: str) -> bool:
    """Tell whether a list repeats one class: all of its elements, or at least half and two."""
    children = graph.modules[path].children
    counts = Counter(graph.modules[child].class_name for child in children)
    most = max(counts.values(), default=0)
    return len(counts) == 1 or (most >= 2 and most * 2 >= len(children))
