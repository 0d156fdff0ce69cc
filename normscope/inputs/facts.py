"""Config -> the sizes in it, whatever part of a composite config holds them."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from transformers import PretrainedConfig


class Scope(StrEnum):
    """Which part of a composite model a size belongs to."""

    TEXT = "text"
    VISION = "vision"
    AUDIO = "audio"


_WORDS = {
    Scope.TEXT: ("text", "language", "llm", "decoder", "thinker"),
    Scope.VISION: ("vision", "visual", "image", "video", "vit", "backbone", "vqmodel", "vq_"),
    Scope.AUDIO: ("audio", "speech", "acoustic", "codec", "encoder", "semantic"),
}
"""Words in the names of sub-configs (`vision_config`); these names are transformers' API."""


def words_of(scope: Scope) -> tuple[str, ...]:
    """Return the words by which the parts of a model say what they see."""
    return _WORDS[scope]


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Looks sizes up in a config and in the configs inside it."""

    config: Any

    def first(self, *names: str, scope: Scope | None = None) -> Any:
        """Return the first of the named values that is set, nearest part first, or None."""
        for part in self._parts(scope):
            for name in names:
                value = getattr(part, name, None)
                if value is not None:
                    return value
        return None

    def number(self, *names: str, default: int, scope: Scope | None = None) -> int:
        """Return the first of the named values that is a number."""
        for part in self._parts(scope):
            for name in names:
                value = getattr(part, name, None)
                if isinstance(value, int | float) and not isinstance(value, bool):
                    return int(value)
                if isinstance(value, list | tuple) and value and isinstance(value[0], int):
                    return int(value[0])
        return default

    def has(self, *names: str, scope: Scope | None = None) -> bool:
        """Tell whether one of the named values is set."""
        return self.first(*names, scope=scope) is not None

    def special_ids(self) -> frozenset[int]:
        """Return every id that some part of the config gives a meaning to."""
        found: set[int] = set()
        for _, part in _tree("", self.config):
            for name, value in vars(part).items():
                if name.endswith(("token_id", "token_index", "_idx", "token_ids")):
                    values = value if isinstance(value, list | tuple) else (value,)
                    found.update(item for item in values if isinstance(item, int))
        return frozenset(found)

    def _parts(self, scope: Scope | None) -> list[Any]:
        tree = list(_tree("", self.config))
        if scope is None:
            return [part for _, part in tree]
        fitting = [part for path, part in tree if any(word in path for word in _WORDS[scope])]
        root = [part for path, part in tree if path == ""]
        others = [
            part
            for path, part in tree
            if path and not any(word in path for words in _WORDS.values() for word in words)
        ]
        return [*fitting, *root, *others]


def _tree(path: str, config: Any) -> Iterator[tuple[str, Any]]:
    """Yield each config with the dotted name it has inside the outermost one."""
    if config is None:
        return
    yield path, config
    for name, value in vars(config).items():
        if isinstance(value, PretrainedConfig):
            yield from _tree(f"{path}.{name}", value)
