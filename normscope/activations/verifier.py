"""What really went into and came out of each norm -> how far its formula is from it."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import nn

from normscope.activations.formula import Stored, apply_formula, stored_of, tensors_of
from normscope.activations.plan import NormPlan, Plan
from normscope.activations.reduce import rows_of
from normscope.norms import Norm
from normscope.statistics import Statistics

_SMALLEST = torch.finfo(torch.float32).tiny


@dataclass(slots=True)
class Verifier:
    """Recomputes each norm from its captured input, when both of its values have been read.

    A value is kept until every norm that needs it has been recomputed.
    """

    norms: Sequence[NormPlan]
    stored: Sequence[Stored | None]
    errors: dict[int, torch.Tensor] = field(default_factory=dict)
    """The largest relative error so far, by the number of the norm."""
    dtypes: dict[int, str] = field(default_factory=dict)
    """The dtype of each norm's output."""
    misfits: set[int] = field(default_factory=set)
    """Norms whose stored gain or bias does not fit their values."""
    _kept: dict[int, torch.Tensor] = field(default_factory=dict)
    _open: dict[int, set[int]] = field(default_factory=dict)
    """Reading -> the norms that still need it in this forward pass."""

    def begin(self) -> None:
        """Forget what is left of the forward pass before."""
        self._kept.clear()
        self._open.clear()
        for number, (plan, stored) in enumerate(zip(self.norms, self.stored, strict=True)):
            if plan.before is not None and plan.after is not None and stored is not None:
                self._open.setdefault(plan.before, set()).add(number)
                self._open.setdefault(plan.after, set()).add(number)

    def see(self, index: int, value: torch.Tensor) -> None:
        """Take a value that was read; what runs afterwards may overwrite it."""
        if index not in self._open:
            return
        self._kept[index] = value.detach().clone()
        for number in sorted(self._open[index]):
            plan = self.norms[number]
            if plan.before in self._kept and plan.after in self._kept:
                self._check(number, self._kept[plan.before], self._kept[plan.after])
                self._close(number, plan)

    def _close(self, number: int, plan: NormPlan) -> None:
        for index in {plan.before, plan.after}:
            if index is not None:
                self._open[index].discard(number)
                if not self._open[index]:
                    self._kept.pop(index, None)

    def _check(self, number: int, before: torch.Tensor, after: torch.Tensor) -> None:
        stored = self.stored[number]
        if stored is None:
            return
        norm = self.norms[number].norm
        try:
            error = relative_error(norm, apply_formula(norm, before, stored), after)
        except RuntimeError:  # sizes that do not fit
            self.misfits.add(number)
            return
        self.dtypes[number] = str(after.dtype).removeprefix("torch.")
        seen = self.errors.get(number)
        self.errors[number] = error if seen is None else torch.maximum(seen, error)

    def _error_of(self, number: int) -> float | None:
        known = number in self.errors and number not in self.misfits
        return float(self.errors[number]) if known else None

    def verified(self, statistics: Statistics) -> Statistics:
        """Return the statistics of the same plan with the error of each norm, where it has one."""
        return replace(
            statistics,
            verified=True,
            norms=tuple(
                replace(
                    norm,
                    error=self._error_of(number),
                    output_dtype=self.dtypes.get(number),
                )
                for number, norm in enumerate(statistics.norms)
            ),
        )


def verifier_of(plan: Plan, module: nn.Module) -> Verifier:
    """Return what recomputes the norms of a plan with the module's own tensors."""
    tensors = tensors_of(module)
    stored = [stored_of(item.norm, item.stored_statistics, tensors) for item in plan.norms]
    return Verifier(plan.norms, stored)


def relative_error(norm: Norm, expected: torch.Tensor, found: torch.Tensor) -> torch.Tensor:
    """Return the largest difference, over the largest magnitude in its row of the norm.

    Close to zero a difference over the value itself would say how near zero the value is. Where
    the formula gives no finite number, nothing is compared; where only the output is not finite,
    the error is infinite. Raises `RuntimeError` where the sizes differ.
    """
    sound = expected.isfinite()
    difference = torch.where(sound, (found.reshape(expected.shape).double() - expected).abs(), 0.0)
    size = torch.where(sound, expected, 0.0).abs()
    size = rows_of(size, norm.axes, norm.groups).amax(-1, keepdim=True)
    shares = rows_of(difference, norm.axes, norm.groups) / size.clamp_min(_SMALLEST)
    return shares.nan_to_num(nan=torch.inf).amax()
