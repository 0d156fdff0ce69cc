"""module + tokens -> Statistics: real weights, one forward pass a batch, only moments are kept."""

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import replace

import torch
from torch import nn

from normscope.activations.chunks import Reporting
from normscope.activations.findings import find_in_statistics
from normscope.activations.measurement import Measurement
from normscope.activations.plan import Plan, plan_measurement
from normscope.activations.probes import Probes, probing
from normscope.activations.select import select_norms
from normscope.activations.streams import Inputs
from normscope.activations.subject import Subject
from normscope.activations.tokens import Labeller, TokenList, unlabelled
from normscope.activations.verifier import Verifier, verifier_of
from normscope.errors import FailureKind, NormscopeError, UsageError
from normscope.statistics import DEFAULT_THRESHOLDS, Statistics, Thresholds
from normscope.tracing import evaluating, running_eagerly

Planner = Callable[[nn.Module, Inputs], Plan]
"""Decides what to read of a module."""


def measure_batches(
    module: nn.Module,
    batches: Iterable[Inputs],
    *,
    subject: Subject,
    label: Labeller = unlabelled,
    exclude_special: bool = False,
    norms: str | None = None,
    reporting: Reporting | None = None,
    planned: Planner = plan_measurement,
    verify: bool = False,
    thresholds: Thresholds = DEFAULT_THRESHOLDS,
) -> Statistics:
    """Measure several batches as one run; the norms are found on the first, by `planned`.

    `reporting` says what becomes of the rows meanwhile. With `verify` each norm's output is
    recomputed in float64 from its input. `thresholds` say from where on something is a finding.
    Raises `NormscopeError` where the forward fails, `UsageError` where `norms` matches nothing or
    there is no batch.
    """
    run: Measurement | None = None
    verifier: Verifier | None = None
    with ExitStack() as attached:
        for batch in batches:
            if run is None:
                run = Measurement(
                    module=module,
                    plan=select_norms(planned(module, batch), norms),
                    subject=subject,
                    tokens=TokenList(label=label, exclude_special=exclude_special),
                    reporting=reporting or Reporting(),
                )
                verifier = verifier_of(run.plan, module) if verify else None
                probes = attached.enter_context(
                    probing(module, run.plan.readings, witness=verifier)
                )
            _measure(run, batch, probes, verifier)
    if run is None:
        raise UsageError("there is no input to measure", "give --input TEXT")
    run.finish()
    statistics = run.statistics()
    if verifier is not None:
        statistics = verifier.verified(statistics)
    return replace(statistics, findings=find_in_statistics(statistics, thresholds), pattern=norms)


def _measure(run: Measurement, inputs: Inputs, probes: Probes, verifier: Verifier | None) -> None:
    """Run one forward pass and take what the probes read."""
    if verifier is not None:
        verifier.begin()
    readings = probes.begin()
    with evaluating(run.module), torch.no_grad(), running_eagerly():
        _forward(run.module, inputs)
    run.take(readings, inputs)


def _forward(module: nn.Module, inputs: Inputs) -> None:
    try:
        module(*inputs.positional, **inputs.keywords)
    except (torch.OutOfMemoryError, MemoryError) as error:
        raise NormscopeError(
            FailureKind.OUT_OF_MEMORY,
            f"the forward pass ran out of memory: {error}",
            "use a smaller --batch-size or --max-length",
        ) from error
    except Exception as error:
        lines = str(error).splitlines() or ["no message"]
        raise NormscopeError(
            FailureKind.TRACE_FAILED,
            f"the forward pass failed: {type(error).__name__}: {lines[0]}",
            "check that the inputs are what the module's forward takes",
        ) from error
