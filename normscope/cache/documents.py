"""Dataclasses <-> plain values that JSON can hold; nothing is lost on the way."""

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

Kind = TypeVar("Kind")

Read = Callable[[Any], Any]


def plain(value: Any) -> Any:
    """Return a value as mappings, lists, text and numbers."""
    if isinstance(value, Enum):
        return value.value
    if is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    return value


def restored(kind: type[Kind], value: Any) -> Kind:
    """Return what `plain` was given, from the annotations of `kind`.

    Raises `TypeError`, `KeyError` or `ValueError` where `value` is no such thing.
    """
    annotation: Any = kind
    found: Kind = _reader(annotation)(value)
    return found


@cache
def _reader(kind: Any) -> Read:
    """Return what reads one annotated type; found once for each."""
    origin = get_origin(kind)
    if origin is UnionType:
        (inner,) = (item for item in get_args(kind) if item is not NoneType)
        return _optional(_reader(inner))
    if origin is tuple:
        return _items(_reader(get_args(kind)[0]))
    if origin is Mapping:
        return _pairs(*(_reader(item) for item in get_args(kind)))
    if is_dataclass(kind):
        return _instance(kind)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind
    return _checked(kind)


def _instance(kind: Any) -> Read:
    readers = {name: _reader(hint) for name, hint in get_type_hints(kind).items()}
    return lambda value: kind(**{name: read(value[name]) for name, read in readers.items()})


def _optional(read: Read) -> Read:
    return lambda value: None if value is None else read(value)


def _items(read: Read) -> Read:
    return lambda value: tuple(read(item) for item in _checked(list)(value))


def _pairs(read_key: Read, read_value: Read) -> Read:
    return lambda value: {read_key(key): read_value(item) for key, item in value.items()}


def _checked(kind: type) -> Read:
    def read(value: Any) -> Any:
        if type(value) is not kind and not (kind is float and type(value) is int):
            raise TypeError(f"a {kind.__name__} is expected, not {value!r}")
        return value

    return read
