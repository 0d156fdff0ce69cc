"""Operation + arguments -> its result on `meta`, derived by torch once for each set of shapes.

A model repeats its blocks, and torch derives the shape of one product on `meta` in Python, which
takes ten times as long as recording it. An operation that was seen before with the same shapes,
strides, dtypes and numbers gives new empty tensors like those that it gave then.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch._ops import OpOverload

from normscope.tracing.devices import on_meta
from normscope.tracing.modules import tensors_in
from normscope.tracing.schema import Schema

_PLAIN = frozenset(
    {
        bool,
        int,
        float,
        str,
        type(None),
        torch.dtype,
        torch.device,
        torch.layout,
        torch.memory_format,
    }
)


@dataclass(frozen=True, slots=True)
class _Form:
    """All that a tensor on `meta` is."""

    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: torch.dtype


class _UnknownArgumentError(TypeError):
    """An argument of which it is not known how it decides the result."""


class KnownResults:
    """Runs operations on `meta`, and remembers what came out."""

    def __init__(self) -> None:
        self._forms: dict[Hashable, _Form | tuple[_Form, ...]] = {}

    def run(
        self, func: OpOverload, schema: Schema, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Return the result of an operation; what is real among its arguments moves to `meta`."""
        try:
            key = (
                (func, argument_key(args), argument_key(kwargs))
                if schema.decided_by_shapes
                else None
            )
        except _UnknownArgumentError:
            key = None
        known = None if key is None else self._forms.get(key)
        if known is not None:
            return _new(known)
        result = func(*on_meta(args), **on_meta(kwargs))
        if key is not None and not _shares_storage(result, (args, kwargs)):
            self._remember(key, result)
        return result

    def _remember(self, key: Hashable, result: Any) -> None:
        if _is_plain(result):
            self._forms[key] = _form(result)
        elif isinstance(result, tuple) and result and all(map(_is_plain, result)):
            self._forms[key] = tuple(map(_form, result))


def argument_key(value: Any) -> Hashable:
    """Return what an argument contributes to a result, as a key; 1, 1.0 and True differ."""
    kind = type(value)
    if kind in _PLAIN:
        return (kind, value)
    if _is_plain(value):
        return _form(value)
    if kind is tuple or kind is list:
        return tuple(map(argument_key, value))
    if kind is dict:
        return tuple((name, argument_key(item)) for name, item in value.items())
    raise _UnknownArgumentError(kind)


def _is_plain(value: Any) -> bool:
    return type(value) in {torch.Tensor, nn.Parameter} and value.layout is torch.strided


def _form(tensor: torch.Tensor) -> _Form:
    return _Form(tuple(tensor.shape), tensor.stride(), tensor.dtype)


def _new(known: _Form | tuple[_Form, ...]) -> Any:
    if isinstance(known, tuple):
        return tuple(map(_new, known))
    return torch.empty_strided(known.shape, known.stride, dtype=known.dtype, device="meta")


def _shares_storage(result: Any, arguments: Any) -> bool:
    """Tell whether a result is a view that the schema does not tell of (`_unsafe_view`)."""
    given = {_storage(tensor) for tensor in tensors_in(arguments)}
    return any(_storage(tensor) in given for tensor in tensors_in(result))


def _storage(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage()._cdata if tensor.layout is torch.strided else -id(tensor)
