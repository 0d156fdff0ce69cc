"""A JSON object of a file -> its values, each of the type that is expected."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeVar

from normscope.errors import UsageError

Word = TypeVar("Word", bound=StrEnum)


@dataclass(frozen=True, slots=True)
class Fields:
    """One object; every reading raises `UsageError` that names the file and the line."""

    values: Mapping[str, Any]
    where: str
    """The file and the line in words."""

    @classmethod
    def of(cls, value: Any, where: str) -> "Fields":
        """Take an object; anything else is an error."""
        if not isinstance(value, dict):
            raise UsageError(f"{where}: an object is expected")
        return cls(value, where)

    def text(self, key: str) -> str:
        """Return a text."""
        text: str = self._checked(key, self._value(key), str, "a text")
        return text

    def text_or_none(self, key: str) -> str | None:
        """Return a text, or None for null."""
        return None if self._value(key) is None else self.text(key)

    def whole(self, key: str) -> int:
        """Return a whole number."""
        number: int = self._checked(key, self._value(key), int, "a whole number")
        return number

    def flag(self, key: str) -> bool:
        """Return true or false."""
        flag: bool = self._checked(key, self._value(key), bool, "true or false")
        return flag

    def word(self, key: str, words: type[Word]) -> Word:
        """Return one of some words."""
        text = self.text(key)
        if text not in set(words):
            raise UsageError(f"{self.where}: {key!r} is {text!r}, which is not known here")
        return words(text)

    def texts(self, key: str) -> tuple[str, ...]:
        """Return a list of texts; none where there is no such key."""
        return tuple(self._checked(key, item, str, "a list of texts") for item in self._list(key))

    def objects(self, key: str) -> tuple["Fields", ...]:
        """Return a list of objects; none where there is no such key."""
        return tuple(Fields.of(item, self.where) for item in self._list(key))

    def object_or_none(self, key: str) -> "Fields | None":
        """Return an object, or None for null."""
        value = self._value(key)
        return None if value is None else Fields.of(value, self.where)

    def _list(self, key: str) -> list[Any]:
        items: list[Any] = self._checked(key, self.values.get(key, []), list, "a list")
        return items

    def _value(self, key: str) -> Any:
        if key not in self.values:
            raise UsageError(f"{self.where}: there is no {key!r}")
        return self.values[key]

    def _checked(self, key: str, value: Any, kind: type, named: str) -> Any:
        if type(value) is not kind:
            raise UsageError(f"{self.where}: {key!r} is not {named}")
        return value
