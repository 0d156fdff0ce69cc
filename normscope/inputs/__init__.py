"""module + config -> example inputs, and the search for those that the module runs on."""

from normscope.inputs.example import ExampleInputs
from normscope.inputs.search import TracedModel, TracedRoot, example_inputs, run_traced

__all__ = ["ExampleInputs", "TracedModel", "TracedRoot", "example_inputs", "run_traced"]
