"""module + tokens -> the statistics of every norm's input and output."""

from normscope.activations.measure import measure_activations, measure_batches
from normscope.activations.streams import Inputs
from normscope.activations.subject import Subject

__all__ = ["Inputs", "Subject", "measure_activations", "measure_batches"]
