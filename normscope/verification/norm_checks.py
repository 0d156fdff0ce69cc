"""Norm reports + the modules they name -> each fact beside what a probe recovers."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from torch import nn

from normscope.inspection import NormCheck, NormReport, NotChecked, VerifiedNorm
from normscope.norms import EpsPosition, NormKind
from normscope.verification.norm_layout import Layout, layouts
from normscope.verification.norm_probe import ObservedNorm, probe_norm
from normscope.verification.randomize import randomized

_EPS_CLOSE = 0.05
_LARGEST_EPS = 1e30
"""Beyond it, and below zero, what a norm gives is zero or no number."""
_OF_A_ROW = frozenset({NormKind.LAYER, NormKind.RMS, NormKind.L2})
_SETTINGS = (bool, int, float, str, tuple, type(None))
_LARGEST = 1 << 20
"""Features beyond which a norm is not probed."""


def verify_norms(
    root: nn.Module, reports: Sequence[NormReport]
) -> Iterator[VerifiedNorm | NotChecked]:
    """Probe each norm that is a module, alone and with random parameters.

    Of modules that are built alike and reported alike, the first is probed for all.
    """
    probed: dict[object, VerifiedNorm | NotChecked] = {}
    for report in reports:
        if report.call > 0 or report.calls == 0:
            continue
        key = _alike(root, report)
        if key not in probed:
            probed[key] = verify_norm(root, report)
        found = probed[key]
        if isinstance(found, NotChecked):
            yield replace(found, what=report.name)
        else:
            yield replace(found, name=report.name, module=report.module)


def _alike(root: nn.Module, report: NormReport) -> object:
    """Return what two modules share that compute the same: class, settings, shapes, facts."""
    if report.module is None:
        return None
    module = root.get_submodule(report.module)
    if next(module.children(), None) is not None:
        return report.module
    settings = tuple(
        (name, value) for name, value in vars(module).items() if isinstance(value, _SETTINGS)
    )
    shapes = tuple((name, value.shape) for name, value in module.named_parameters())
    facts = (report.kind, report.axes, report.shape, report.groups, report.eps,
             report.eps_position, report.gain, report.bias)  # fmt: skip
    return type(module), settings, shapes, facts


def verify_norm(root: nn.Module, report: NormReport) -> VerifiedNorm | NotChecked:
    """Compare one report with its module under `root`, which may lie on `meta`."""
    if report.module is None:
        return NotChecked(what=report.name, reason="it is no module of its own")
    if math.prod(report.shape) > _LARGEST:
        return NotChecked(what=report.name, reason="it is too large to probe")
    if is_over_one_element(report):
        return NotChecked(
            what=report.name, reason="it normalizes single values, which tell nothing"
        )
    if report.eps is not None and not 0 <= report.eps < _LARGEST_EPS:
        return NotChecked(what=report.name, reason=f"its eps is {report.eps:g}")
    module = root.get_submodule(report.module)
    failure = "its report names no shape"
    for layout in layouts(report):
        twin = randomized(module)
        if report.kind == NormKind.BATCH:
            # Its statistics are then those of the input, not stored ones.
            twin.train()
        try:
            observed = probe_norm(twin, layout)
        except Exception as error:  # noqa: BLE001  # whatever the module's forward raises
            failure = f"it does not run alone: {type(error).__name__}: {_first_line(error)}"
            continue
        if report.kind == NormKind.BATCH and observed.count == 1:
            return NotChecked(what=report.name, reason="it normalizes by stored statistics")
        return VerifiedNorm(
            name=report.name,
            module=report.module,
            checks=tuple(compared(report, observed, layout)),
        )
    return NotChecked(what=report.name, reason=failure)


def is_over_one_element(report: NormReport) -> bool:
    """Tell whether a norm gives of its input the sign at most: one element has no spread."""
    return report.kind in _OF_A_ROW and math.prod(report.shape) == 1


def compared(report: NormReport, observed: ObservedNorm, layout: Layout) -> Iterator[NormCheck]:
    """Yield each fact of a report beside the observed one."""
    if observed.kind is None:
        seen = f"no known formula (residual {observed.residual:.1g})"
        if observed.count == 1:
            seen = "no statistic of its input"
        yield _check("kind", report.kind, seen, agrees=False)
        return
    if report.kind == NormKind.GROUP and observed.kind is NormKind.INSTANCE:
        # One channel a group: both names are right, and one number tells all three facts.
        yield _check("groups", str(report.groups), str(layout.shape[layout.features[0]]))
    else:
        yield _check("kind", report.kind, observed.kind.value)
        yield _check("axes", _axes(layout.reported_axes), _axes(observed.axes))
        yield _check("groups", str(report.groups or 1), str(observed.groups))
    yield _check("gain", report.gain, observed.gain.value)
    yield _check("bias", str(report.bias).lower(), str(observed.bias).lower())
    yield _check("eps", _number(report.eps), _number(observed.eps), agrees=_eps(report, observed))
    if observed.eps is not None:
        yield _check("eps_position", report.eps_position, observed.eps_position.value)


def _check(fact: str, reported: str, observed: str, *, agrees: bool | None = None) -> NormCheck:
    return NormCheck(
        fact=fact,
        reported=reported,
        observed=observed,
        agrees=reported == observed if agrees is None else agrees,
    )


def _axes(axes: tuple[int, ...]) -> str:
    return ", ".join(str(axis) for axis in axes)


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:.3g}"


def _eps(report: NormReport, observed: ObservedNorm) -> bool:
    """Compare eps in the units of the report: of a mean, or of a sum of squares or its root."""
    if not report.eps or observed.eps is None:
        return not report.eps and observed.eps is None
    units = {1.0}
    if report.kind in {NormKind.L2, NormKind.RMS}:
        inside = observed.eps_position is EpsPosition.INSIDE
        units.add(observed.count if inside else observed.count**0.5)
    seen = [observed.eps * unit for unit in units]
    if observed.eps_position is EpsPosition.CLAMP:
        seen += [value**2 for value in seen]
    return any(math.isclose(report.eps, value, rel_tol=_EPS_CLOSE) for value in seen)


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), "no message")
