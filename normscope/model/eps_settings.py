"""Config -> every number in it that is an eps, with its key."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

_WORDS = frozenset({"eps", "epsilon"})
_BREAK = re.compile(r"[^a-zA-Z]+")


def eps_settings(config: Any) -> tuple[tuple[str, float | None], ...]:
    """Return the dotted key and the value of each number whose key has the word eps, in order.

    A config has one for each of its parts (`vision_config.layer_norm_eps`), and some that no norm
    reads. A part without any is named with None. What is not transformers' own config has none.
    """
    if not hasattr(config, "to_dict"):
        return ()
    return tuple(_settings(config.to_dict(), ""))


def _settings(values: Mapping[Any, Any], prefix: str) -> Iterator[tuple[str, float | None]]:
    for key, value in values.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            found = tuple(_settings(value, f"{name}."))
            yield from found
            if not found and "model_type" in value:
                yield name, None
        elif isinstance(value, int | float) and not isinstance(value, bool) and _is_eps(str(key)):
            yield name, float(value)


def _is_eps(key: str) -> bool:
    return not _WORDS.isdisjoint(_BREAK.split(key.lower()))
