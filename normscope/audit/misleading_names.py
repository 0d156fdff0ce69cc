"""Where a norm's name says another thing than the dataflow: never a ground for a verdict."""

import re

from normscope.inspection import BranchKind, Role

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")

_DOES = {
    Role.BRANCH_INPUT: "it normalizes the input of the {branch}",
    Role.INSIDE_BRANCH: "it stands inside the {branch}",
    Role.BRANCH_OUTPUT: "it normalizes the output of the {branch}",
    Role.TRUNK: "it normalizes the stream after the {branch}",
    Role.EMBEDDING: "it normalizes the embeddings",
    Role.FINAL: "it is the final norm",
    Role.STACK_INPUT: "it stands before the first block",
    Role.BETWEEN_STACKS: "it stands between two stacks",
    Role.HEAD: "it belongs to the head",
    Role.POOLER: "it belongs to the pooler",
}

_AFTER = frozenset({Role.BRANCH_OUTPUT, Role.TRUNK})
_IN_BLOCK = frozenset({Role.BRANCH_INPUT, Role.BRANCH_OUTPUT, Role.TRUNK})

_SAYS_OTHERWISE = {
    "post": frozenset({Role.BRANCH_INPUT}),
    "after": frozenset({Role.BRANCH_INPUT}),
    "pre": _AFTER,
    "before": _AFTER,
    "input": _AFTER,
    "output": frozenset({Role.BRANCH_INPUT}),
    "final": _IN_BLOCK | {Role.EMBEDDING, Role.STACK_INPUT},
    "embedding": _IN_BLOCK | {Role.FINAL},
    "embeddings": _IN_BLOCK | {Role.FINAL},
    "embed": _IN_BLOCK | {Role.FINAL},
}
"""A word of a name, and the roles that contradict it."""


def contradiction(name: str, role: Role, branch: BranchKind | None = None) -> str | None:
    """Return what a reader of `name` would get wrong, as the end of a sentence, or None.

    Only the module's own name counts, not the path that leads to it.
    """
    own = name.partition(":")[0].rpartition(".")[2]
    for word in _WORD.findall(own):
        if role in _SAYS_OTHERWISE.get(word.lower(), ()):
            does = _DOES[role].format(branch="branch" if branch is None else branch.value)
            return f'named "{word}", but {does}'
    return None
