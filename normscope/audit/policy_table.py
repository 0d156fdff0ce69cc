"""A table of a policy -> its values, each of the type that its key has."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from normscope.audit.policy import Place
from normscope.audit.policy_source import PolicySource, did_you_mean
from normscope.audit.toml_lines import KeyPath

_TYPES: Mapping[type, str] = {
    bool: "a truth value",
    str: "a string",
    int: "a whole number",
    float: "a number",
    list: "a list",
    dict: "a table",
}
_SHOWN = 40
"""Characters of a wrong value that a message shows at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyTable:
    """One table; a value that is wrong is noted in the source and read as if it were not there."""

    source: PolicySource
    path: KeyPath
    title: str
    """As the file writes its header: `[[family]]`."""
    values: Mapping[str, Any]
    keys: tuple[str, ...] = ()
    """The keys that it may have; () where they are free."""
    elsewhere: Mapping[str, str] = field(default_factory=dict)
    """Key that stands in another table -> title of that table."""

    def __post_init__(self) -> None:
        for key in self.values:
            if self.keys and key not in self.keys:
                self.wrong(key, f"{self.title} has no key `{key}`", self._instead(key))

    def _instead(self, key: str) -> str:
        if key in self.elsewhere:
            return f"`{key}` belongs in {self.elsewhere[key]}"
        return did_you_mean(key, self.keys, "its keys")

    def place(self, key: str | int, *more: int) -> Place:
        """Return the line of a key, or of an element of its list."""
        return self.source.place((*self.path, key, *more))

    def wrong(self, key: str | int, message: str, hint: str = "", *, element: int = -1) -> None:
        """Note a mistake in the line of a key, or of an element of its list."""
        path = (*self.path, key) if element < 0 else (*self.path, key, element)
        self.source.wrong(path, message, hint)

    def text(self, key: str, known: Collection[str] = (), kind: str = "value") -> str | None:
        """Return a string, which is one of the `known`, where there are such."""
        value = self.values.get(key)
        if value is None:
            return None
        if not isinstance(value, str):
            self._other_type(key, value, "a string")
            return None
        if known and value not in known:
            hint = did_you_mean(value, known, "known")
            self.wrong(key, f"`{key}` cannot be {shown(value)}, which is no {kind}", hint)
            return None
        return value

    def texts(self, key: str) -> tuple[str, ...] | None:
        """Return a list of strings, none of them empty."""
        value = self.values.get(key)
        if value is None:
            return None
        if not isinstance(value, list):
            hint = f"write `{key} = [{shown(value)}]`" if isinstance(value, str) else ""
            self._other_type(key, value, "a list of strings", hint)
            return None
        for number, item in enumerate(value):
            if not isinstance(item, str):
                self._other_type(key, item, "a list of strings alone", element=number)
            elif not item.strip():
                self.wrong(key, f"`{key}` has an empty string", element=number)
        return tuple(item for item in value if isinstance(item, str))

    def flag(self, key: str) -> bool | None:
        """Return true or false."""
        value = self.values.get(key)
        if value is None or isinstance(value, bool):
            return value
        self._other_type(key, value, "true or false")
        return None

    def count(self, key: str, *, least: int = 0) -> int | None:
        """Return a whole number that is not below `least`."""
        value = self.values.get(key)
        if value is None:
            return None
        if not isinstance(value, int) or isinstance(value, bool):
            self._other_type(key, value, "a whole number")
            return None
        if not least <= value <= _LARGEST:
            bound = f"at least {least}" if value < least else "a count of something"
            self.wrong(key, f"`{key}` must be {bound}, not {shown(value)}")
            return None
        return value

    def number(self, key: str) -> float | None:
        """Return a finite number that is not negative."""
        value = self.values.get(key)
        if value is None:
            return None
        if not isinstance(value, int | float) or isinstance(value, bool):
            self._other_type(key, value, "a number", _unquoted(key, value))
            return None
        if not 0 <= value <= _LARGEST:
            self.wrong(key, f"`{key}` must be 0 or more and finite, not {shown(value)}")
            return None
        return float(value)

    def table(
        self,
        key: str,
        title: str,
        keys: tuple[str, ...] = (),
        elsewhere: Mapping[str, str] | None = None,
    ) -> "PolicyTable | None":
        """Return a table below this one."""
        value = self.values.get(key)
        if value is None:
            return None
        if not isinstance(value, dict):
            self._other_type(key, value, "a table", f"write it as {title}")
            return None
        return self._below((*self.path, key), title, value, keys, elsewhere)

    def tables(
        self,
        key: str,
        title: str,
        keys: tuple[str, ...],
        elsewhere: Mapping[str, str] | None = None,
    ) -> list["PolicyTable"]:
        """Return the tables of an array below this one."""
        value = self.values.get(key, [])
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            hint = f"write `{title}` with two brackets" if isinstance(value, dict) else ""
            self._other_type(key, value, "an array of tables", hint or f"write it as {title}")
            return []
        return [
            self._below((*self.path, key, number), title, item, keys, elsewhere)
            for number, item in enumerate(value)
        ]

    def _below(
        self,
        path: KeyPath,
        title: str,
        values: Mapping[str, Any],
        keys: tuple[str, ...],
        elsewhere: Mapping[str, str] | None,
    ) -> "PolicyTable":
        return PolicyTable(
            source=self.source,
            path=path,
            title=title,
            values=values,
            keys=keys,
            elsewhere=elsewhere or {},
        )

    def _other_type(
        self, key: str, value: object, wanted: str, hint: str = "", *, element: int = -1
    ) -> None:
        found = _TYPES.get(type(value), "a date or time")
        what = found if isinstance(value, list | dict) else f"{found}: {shown(value)}"
        self.wrong(key, f"`{key}` must be {wanted}, and is {what}", hint, element=element)


_LARGEST = 1e15
"""Up to here whole numbers are floats too, and are written in few digits."""


def shown(value: object) -> str:
    """Return a value about as the file writes it, cut where it is long."""
    if isinstance(value, int) and abs(value) > _LARGEST:
        return "so large a number"  # Python refuses to write thousands of digits
    text = str(value).lower() if isinstance(value, bool) else str(value)
    text = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
    return f'"{text}"' if isinstance(value, str) else text


def _unquoted(key: str, value: object) -> str:
    """Return the hint for a number that was written in quotes."""
    if not isinstance(value, str):
        return ""
    try:
        float(value)
    except ValueError:
        return ""
    return f"write `{key} = {value}`, without quotes"
