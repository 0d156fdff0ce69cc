"""module + tokens -> Statistics: real weights, one forward pass a batch, only moments are kept."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import nn

from normscope.activations.findings import find_in_statistics
from normscope.activations.norm_entries import NormEntries
from normscope.activations.plan import Plan, plan_measurement
from normscope.activations.probes import probing
from normscope.activations.select import select_norms
from normscope.activations.streams import Inputs, as_inputs, token_streams
from normscope.activations.subject import Subject, device_of, subject_of, unwrapped
from normscope.activations.tokens import Labeller, TokenList, unlabelled
from normscope.errors import FailureKind, NormscopeError, UsageError
from normscope.statistics import Statistics
from normscope.tracing import evaluating


def measure_activations(
    module: nn.Module,
    inputs: Any,
    *,
    mask: torch.Tensor | None = None,
    label: Labeller = unlabelled,
    exclude_special: bool = False,
    norms: str | None = None,
) -> Statistics:
    """Measure what each norm of a live module gets and gives, token by token.

    `inputs` is a mapping of keyword arguments, a tuple of positional ones, or one tensor. `mask` is
    [batch, sequence], true where a token counts; without it the `attention_mask` among the inputs.
    `norms` is a pattern of names (`*.ln_1`). The module runs in eval mode without gradients, once
    to find its norms and once to measure; its mode and hooks are as before afterwards. Raises
    `NormscopeError` where the forward fails, `UsageError` where `norms` matches nothing.
    """
    module = unwrapped(module)
    return measure_batches(
        module,
        [as_inputs(inputs, mask)],
        subject=subject_of(module),
        label=label,
        exclude_special=exclude_special,
        norms=norms,
    )


def measure_batches(
    module: nn.Module,
    batches: Iterable[Inputs],
    *,
    subject: Subject,
    label: Labeller = unlabelled,
    exclude_special: bool = False,
    norms: str | None = None,
) -> Statistics:
    """Measure several batches as one run; the norms are found on the first.

    Raises as `measure_activations`, and `UsageError` where there is no batch.
    """
    run: _Run | None = None
    for batch in batches:
        if run is None:
            plan = select_norms(plan_measurement(module, batch), norms)
            run = _Run(module, plan, TokenList(label=label, exclude_special=exclude_special))
        run.measure(batch)
    if run is None:
        raise UsageError("there is no input to measure", "give --input TEXT")
    statistics = Statistics(
        target=subject.target,
        versions=subject.versions,
        model=subject.model,
        dtype=subject.model.dtype,
        device=device_of(module),
        input=run.tokens.facts(),
        tokens=run.tokens.tokens(),
        norms=(*(entry.as_statistics() for entry in run.entries), *run.plan.idle),
    )
    return replace(statistics, findings=find_in_statistics(statistics))


@dataclass(slots=True)
class _Run:
    """One measurement while it goes on."""

    module: nn.Module
    plan: Plan
    tokens: TokenList
    entries: list[NormEntries] = field(init=False)

    def __post_init__(self) -> None:
        self.entries = [NormEntries(norm) for norm in self.plan.norms]

    def measure(self, inputs: Inputs) -> None:
        """Run one forward pass and take what the probes read."""
        with (
            evaluating(self.module),
            torch.no_grad(),
            probing(self.module, self.plan.readings) as readings,
        ):
            _forward(self.module, inputs)
        used = {norm.rows.stream for norm in self.plan.norms if norm.rows.layout is not None}
        streams = [item for item in token_streams(self.module, inputs) if item.name in used]
        sequences = streams[0].extent.batch if streams else _first_size(inputs)
        counted = self.tokens.add(streams, sequences)
        for norm, entries in zip(self.plan.norms, self.entries, strict=True):
            entries.add(readings, counted.get(norm.rows.stream))


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


def _first_size(inputs: Inputs) -> int:
    values = (*inputs.positional, *inputs.keywords.values())
    sizes = (len(value) for value in values if isinstance(value, torch.Tensor) and value.dim())
    return next(sizes, 1)
