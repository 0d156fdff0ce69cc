"""Target text -> the checkpoint of the model that it is, or that it adapts."""

from dataclasses import replace

from normscope.checkpoint import Checkpoint, resolve_base, resolve_checkpoint
from normscope.errors import AdapterOnlyError, NormscopeError, UsageError
from normscope.limits import Limits


def resolve_model(
    target: str, *, revision: str | None, offline: bool, limits: Limits | None = None
) -> Checkpoint:
    """Find the target, or the base model of the adapter that it is.

    Raises as `resolve_checkpoint` does, and `AdapterOnlyError` where the base cannot be found.
    """
    try:
        return resolve_checkpoint(target, revision=revision, offline=offline, limits=limits)
    except AdapterOnlyError as adapter:
        try:
            base = resolve_base(adapter, offline=offline, limits=limits)
        except (NormscopeError, UsageError) as error:
            if error is adapter:
                raise
            raise _without_base(adapter, error) from error
        return replace(base, target=target, adapter=adapter.directory)


def _without_base(
    adapter: AdapterOnlyError, error: NormscopeError | UsageError
) -> AdapterOnlyError:
    return AdapterOnlyError(
        f"{adapter.message}; {error.message}",
        error.hint or adapter.hint,
        base=adapter.base,
        directory=adapter.directory,
    )
