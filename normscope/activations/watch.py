"""A running module -> Statistics of every call of it, for as long as it is watched."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

import torch
from torch import nn

from normscope.activations.findings import find_in_statistics
from normscope.activations.forms import Form, aligned_readings, form_of
from normscope.activations.interception import Interception
from normscope.activations.measurement import Measurement
from normscope.activations.plan import Reading
from normscope.activations.probes import probing
from normscope.activations.rehearsal import rehearse
from normscope.activations.select import select_norms
from normscope.activations.shelf import Shelf
from normscope.activations.streams import Inputs
from normscope.activations.subject import subject_of, unwrapped
from normscope.activations.texts import labeller
from normscope.activations.tokens import TokenList
from normscope.errors import FailureKind, NormscopeError, UsageError
from normscope.statistics import DEFAULT_THRESHOLDS, Statistics, Thresholds
from normscope.tracing import running_eagerly


def watch(
    model: nn.Module,
    *,
    tokenizer: Any = None,
    exclude_special: bool = False,
    norms: str | None = None,
    thresholds: Thresholds = DEFAULT_THRESHOLDS,
) -> "Watch":
    """Return a context in which every call of `model` is measured.

        with normscope.watch(model) as watched:
            model(**batch).loss.backward()
        watched.statistics()

    The model runs as it always does, in its own mode and with its gradients, and only moments are
    kept. What is called for the first time in a form (its mode, the kind of its inputs) runs twice,
    to find the norms; the model does not notice. Compiled code runs uncompiled meanwhile. Call it
    from one thread at a time: what two compute would be mixed up.
    `tokenizer`, `norms` and `thresholds` are as in `measure_activations`. Raises `NormscopeError`
    for a module that is scripted, or copied to several devices.
    """
    if isinstance(model, nn.DataParallel) and len(model.device_ids) > 1:
        raise NormscopeError(
            FailureKind.TRACE_FAILED,
            "nn.DataParallel runs copies of the module, which cannot be watched",
            "watch it on one device, or use DistributedDataParallel",
        )
    module = unwrapped(model)
    label = labeller(tokenizer, getattr(module, "config", None))
    tokens = TokenList(label=label, exclude_special=exclude_special)
    return Watch(module, tokens=tokens, norms=norms, thresholds=thresholds)


class Watch:
    """A module while it is watched, and what was seen of it."""

    def __init__(
        self, module: nn.Module, *, tokens: TokenList, norms: str | None, thresholds: Thresholds
    ) -> None:
        self.calls = 0
        """How many calls were measured."""
        self._module = module
        self._tokens = tokens
        self._norms = norms
        self._thresholds = thresholds
        self._measurement: Measurement | None = None
        self._forms: dict[Form, tuple[Reading, ...] | None] = {}
        self._missed = 0
        self._failure: Exception | None = None
        self._open = False
        self._shelf = Shelf()
        self._active = ExitStack()

    def __enter__(self) -> Self:
        """Begin to watch."""
        self._active.enter_context(running_eagerly())
        self._active.callback(Interception(self._module, self._around).undo)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Leave the module as it was."""
        self._active.close()

    def statistics(self) -> Statistics:
        """Return what all calls so far have shown, with findings; token by token while few enough.

        Raises `NormscopeError` where no call could be measured, `UsageError` where there was none.
        """
        if self._measurement is None:
            raise self._nothing_seen()
        statistics = self._measurement.statistics()
        findings = find_in_statistics(statistics, self._thresholds)
        statistics = replace(statistics, findings=findings, pattern=self._norms)
        if not self._missed:
            return statistics
        calls = "1 call was" if self._missed == 1 else f"{self._missed} calls were"
        return replace(
            statistics,
            warnings=(*statistics.warnings, f"{calls} not measured: {self._failure}"),
        )

    def _nothing_seen(self) -> Exception:
        if self._failure is None:
            return UsageError(
                "the model was not called while it was watched",
                "call model(inputs): what model.forward(inputs) does is not seen",
            )
        if isinstance(self._failure, NormscopeError | UsageError):
            return self._failure
        failure = NormscopeError(FailureKind.INTERNAL, f"no call was measured: {self._failure}")
        failure.__cause__ = self._failure
        return failure

    @contextmanager
    def _around(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Iterator[None]:
        """Measure one call, unless it is one that the module makes of itself."""
        inputs = Inputs(positional=args, keywords=kwargs)
        wanted = None if self._open else self._wanted(inputs)
        if wanted is None or self._measurement is None:
            yield
            return
        self._open = True
        try:
            with probing(self._module, wanted, shelf=self._shelf) as probes:
                readings = probes.begin()
                yield
        finally:
            self._open = False
        with torch.no_grad():
            self._measurement.take(readings, inputs)
        self.calls += 1

    def _wanted(self, inputs: Inputs) -> tuple[Reading, ...] | None:
        """Return what to read of a call; None where that cannot be found."""
        form = form_of(self._module, inputs)
        if form not in self._forms:
            self._forms[form] = self._planned(inputs)
        if self._forms[form] is None:
            self._missed += 1
        return self._forms[form]

    def _planned(self, inputs: Inputs) -> tuple[Reading, ...] | None:
        try:
            plan = select_norms(rehearse(self._module, inputs), self._norms)
        except Exception as error:  # noqa: BLE001 - what runs is the user's, and goes on
            self._failure = error
            return None
        if self._measurement is None:
            self._measurement = Measurement(
                module=self._module,
                plan=plan,
                subject=subject_of(self._module),
                tokens=self._tokens,
            )
        return aligned_readings(self._measurement.plan, plan)
