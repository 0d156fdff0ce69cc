"""Code run as it is written: neither compiled nor fused, so that hooks fire and operations show."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

import torch


@dataclass(slots=True)
class _Eager:
    """How many ask for it, and how it is undone: they need not end in the order they began."""

    asking: int = 0
    undo: ExitStack = field(default_factory=ExitStack)


_eager = _Eager()


@contextmanager
def running_eagerly() -> Iterator[None]:
    """Switch off torch.compile and the fused attention of `nn.TransformerEncoder` for a while.

    Compiled code has no place for a hook that came later (pytorch#117758). The fused encoder goes
    on to nested tensors under a padding mask, whose rows nothing can be read of (torch 2.13).
    """
    if not _eager.asking:
        _switch_off(_eager.undo)
    _eager.asking += 1
    try:
        yield
    finally:
        _eager.asking -= 1
        if not _eager.asking:
            _eager.undo.close()


def _switch_off(undo: ExitStack) -> None:
    fused = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    undo.callback(torch.backends.mha.set_fastpath_enabled, fused)
    # Without the compiler in memory nothing is compiled, and it takes a second to import.
    if "torch._dynamo" in sys.modules:
        undo.enter_context(torch.compiler.set_stance("force_eager"))
