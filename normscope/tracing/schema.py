"""ATen overload -> what its schema says of it: names of arguments, writes, views."""

from dataclasses import dataclass
from functools import cache

import torch
from torch._ops import OpOverload


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """The facts of one overload that recording needs."""

    operation: str
    names: tuple[str, ...]
    """Names of the arguments, in order."""
    written: tuple[str, ...]
    """Names of the arguments that are written in place."""
    returns_argument: bool
    """Whether the result is one of the arguments, written."""
    decided_by_shapes: bool
    """Whether shapes, dtypes and numbers decide what the result is on `meta`: an operation of
    torch's own that writes nothing and returns no view."""


@cache
def schema_of(overload: OpOverload) -> Schema:
    """Read the schema of one overload."""
    schema = overload._schema
    namespace, _, name = schema.name.partition("::")
    written = tuple(
        argument.name
        for argument in schema.arguments
        if argument.alias_info is not None and argument.alias_info.is_write
    )
    # __or__ and friends keep their underscores; add_ loses its one.
    plain = name[:-1] if name.endswith("_") and not name.endswith("__") else name
    return Schema(
        operation=plain if namespace == "aten" else f"{namespace}::{plain}",
        names=tuple(argument.name for argument in schema.arguments),
        written=written,
        returns_argument=bool(written),
        decided_by_shapes=namespace == "aten" and not _aliases(overload),
    )


def _aliases(overload: OpOverload) -> bool:
    schema = overload._schema
    return any(value.alias_info is not None for value in (*schema.arguments, *schema.returns))


def is_factory(overload: OpOverload) -> bool:
    """Tell whether the operation makes a tensor from numbers alone (`arange`, `zeros`)."""
    return torch.Tag.nondeterministic_seeded not in overload.tags and not any(
        "Tensor" in str(argument.type) for argument in overload._schema.arguments
    )
