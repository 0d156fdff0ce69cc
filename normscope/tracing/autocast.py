"""`torch.autocast` regions on `meta`, which torch refuses to enter and even to be asked about.

Older transformers (4.56 and 5.0 among them) does one or the other in every rotary
embedding, for the device of its input. On `meta` nothing is cast: the region that is entered in its
place is that of the CPU, which has no part in operations on `meta`.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch


@contextmanager
def autocast_known_on_meta() -> Iterator[None]:
    """Let code enter autocast regions for `meta`, and ask for them, while the context lasts."""
    with ExitStack() as undo:
        enter: Callable[..., None] = torch.autocast.__init__
        asked: Callable[..., bool] = torch.is_autocast_enabled

        def on_cpu(region: torch.autocast, device_type: str, *args: Any, **kwargs: Any) -> None:
            enter(region, "cpu" if device_type == "meta" else device_type, *args, **kwargs)

        def is_enabled(*device_type: str) -> bool:
            return device_type != ("meta",) and asked(*device_type)

        for owner, name, stand_in in (
            (torch.autocast, "__init__", on_cpu),
            (torch, "is_autocast_enabled", is_enabled),
        ):
            undo.callback(setattr, owner, name, getattr(owner, name))
            setattr(owner, name, stand_in)
        yield
