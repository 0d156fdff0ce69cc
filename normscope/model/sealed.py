"""Keeps transformers to the files that it is given: no code, no network, no question.

Every door is shut by name as well where it is called (`trust_remote_code=False`); here are those
that a config opens on its own: code of another repository, kernels from the Hub, adapters that lie
beside a model and name another one.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from typing import Any, NoReturn

from normscope.errors import FailureKind, NormscopeError


@contextmanager
def sealed(target: str, *, trust_remote_code: bool, kernels: bool = False) -> Iterator[None]:
    """Let transformers run no code that comes with a target, and ask neither the user nor the Hub.

    With `trust_remote_code` it may run code, and fetch it; with `kernels` it may fetch what
    computes attention. The context raises `NormscopeError` of kind `remote_code` where something
    is run all the same.
    """

    def refuse(*_: Any, **__: Any) -> NoReturn:
        raise _refused(target)

    with ExitStack() as stack:
        # Its question waits for an answer that many seconds; with none it is not put.
        _shut(stack, "transformers.dynamic_module_utils", "TIME_OUT_REMOTE_CODE", 0)
        if not trust_remote_code:
            _shut(stack, "transformers.dynamic_module_utils", "get_class_in_module", refuse)
        if not trust_remote_code and not kernels:
            _shut(stack, "huggingface_hub.constants", "HF_HUB_OFFLINE", True)
            _shut(stack, "transformers.integrations.hub_kernels", "get_kernel", refuse)
            _shut(stack, "transformers.integrations.hub_kernels", "_kernels_enabled", False)
        _shut(stack, "transformers.integrations.peft", "is_peft_available", _no)
        yield


def _shut(stack: ExitStack, module: str, name: str, value: object) -> None:
    """Replace a name of a library that has it, until the stack unwinds; versions differ."""
    try:
        library = import_module(module)
        before = getattr(library, name)
    except (ImportError, AttributeError):
        return
    setattr(library, name, value)
    stack.callback(setattr, library, name, before)


def _no() -> bool:
    return False


def _refused(target: str) -> NormscopeError:
    return NormscopeError(
        FailureKind.REMOTE_CODE,
        f"{target}: it asks for code that is not transformers' own",
        "read that code, then run again with --trust-remote-code",
    )
