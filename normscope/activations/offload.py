"""Offloaded module + inputs -> the plan of its measurement, without reading its weights twice."""

from functools import partial

from torch import nn

from normscope.activations.measure import Planner
from normscope.activations.plan import Plan, plan_measurement
from normscope.activations.streams import Inputs
from normscope.activations.taps import ModuleTap
from normscope.model import LoadedModel


def planner_for(loaded: LoadedModel) -> Planner:
    """Return what decides what to read of a loaded model."""
    return plan_measurement if loaded.skeleton is None else partial(plan_offloaded, loaded.skeleton)


def plan_offloaded(skeleton: nn.Module, module: nn.Module, inputs: Inputs) -> Plan:
    """Return what to read of `module`, whose weights are on `meta` in `skeleton`.

    Values that go in and out of modules are the same in both. Where one is read inside a module,
    what runs there must be counted in a pass with the weights, which takes as long as another
    measurement. Raises `NormscopeError` of kind `trace_failed` where the forward fails.
    """
    plan = plan_measurement(skeleton, inputs)
    if all(isinstance(reading.tap, ModuleTap) for reading in plan.readings):
        return plan
    return plan_measurement(module, inputs)
