"""Matched norms + stored tensors of both sides -> those that one side lacks or has otherwise."""

from collections.abc import Iterator, Mapping, Sequence

from normscope.comparison.difference import Difference, NormPair
from normscope.inspection import BlockReport, Inspection
from normscope.weights.report import ParameterProblem, StoredParameter
from normscope.weights.stored_norms import StoredNorms

_FACT = "weights"


def storage_differences(
    left: Inspection,
    right: Inspection,
    pairs: Sequence[NormPair],
    stored: tuple[StoredNorms, StoredNorms],
) -> tuple[Difference, ...]:
    """Compare which of the matched norms' parameters the files have, and in which shape.

    What both sides lack alike is no difference. Then follow the tensors among the norms' that only
    one side has and that no parameter reads.
    """
    blocks = {block.path: block for block in (*right.blocks, *left.blocks)}
    found = (*_of_pairs(pairs, *stored, blocks), *_extra(pairs, *stored, blocks))
    return tuple(dict.fromkeys(found))  # a norm that runs twice has its parameters once


# The norms' own parameters.


def _of_pairs(
    pairs: Sequence[NormPair],
    ours: StoredNorms,
    theirs: StoredNorms,
    blocks: Mapping[str, BlockReport],
) -> Iterator[Difference]:
    for pair in pairs:
        alike = pair.left.shape == pair.right.shape  # else the norms' own shapes are told
        for one, other in pair.parameters:
            left, right = ours.parameters.get(one), theirs.parameters.get(other)
            if left is not None and right is not None and _differ(left, right, alike=alike):
                yield _difference(
                    one,
                    blocks.get(pair.left.block or ""),
                    _state(left, "A"),
                    _state(right, "B"),
                    other=other if other != one else None,
                )


def _differ(left: StoredParameter, right: StoredParameter, *, alike: bool) -> bool:
    if left.shape is None or right.shape is None:
        return left.shape != right.shape
    if left.converted or right.converted:
        return False  # its shape is that of what it is computed from
    misshapen = ParameterProblem.SHAPE in (left.problem, right.problem)
    return left.shape != right.shape and (alike or misshapen)


def _state(item: StoredParameter, side: str) -> str:
    return _missing(side) if item.shape is None else _stored(item.shape)


def _missing(side: str) -> str:
    return f"missing from {side}'s weights"


def _stored(shape: tuple[int, ...]) -> str:
    return f"stored with shape {'×'.join(map(str, shape)) or 'scalar'}"


# Tensors beside them.


def _extra(
    pairs: Sequence[NormPair],
    ours: StoredNorms,
    theirs: StoredNorms,
    blocks: Mapping[str, BlockReport],
) -> Iterator[Difference]:
    modules = {_split(other)[0]: _split(one)[0] for pair in pairs for one, other in pair.parameters}
    left = {item.name: item.shape for item in ours.extra}
    right = {_translated(item.name, modules): item for item in theirs.extra}
    for name, shape in left.items():
        if name not in right:
            yield _difference(name, _around(name, blocks), _unread(shape), _missing("B"))
        elif right[name].shape != shape:
            told = _unread(right[name].shape)
            yield _difference(name, _around(name, blocks), _unread(shape), told)
    for name, item in right.items():
        if name not in left:
            around = _around(item.name, blocks)
            yield _difference(item.name, around, _missing("A"), _unread(item.shape))


def _translated(name: str, modules: Mapping[str, str]) -> str:
    module, leaf = _split(name)
    return f"{modules.get(module, module)}.{leaf}"


def _split(name: str) -> tuple[str, str]:
    module, _, leaf = name.rpartition(".")
    return module, leaf


def _unread(shape: tuple[int, ...]) -> str:
    return f"{_stored(shape)}, and no parameter reads it"


def _around(path: str, blocks: Mapping[str, BlockReport]) -> BlockReport | None:
    while path and path not in blocks:
        path = path.rpartition(".")[0]
    return blocks.get(path) if path else None


def _difference(
    where: str, block: BlockReport | None, left: str, right: str, *, other: str | None = None
) -> Difference:
    return Difference(
        where=where,
        stack=None if block is None else block.stack,
        index=None if block is None else block.index,
        fact=_FACT,
        left=left,
        right=right,
        other=other,
        of_weights=True,
    )
