"""module + tokens -> the statistics of every norm's input and output."""

from normscope.activations.measure import measure_batches
from normscope.activations.measured import measure_activations
from normscope.activations.streams import Inputs
from normscope.activations.subject import Subject
from normscope.activations.watch import Watch, watch

__all__ = ["Inputs", "Subject", "Watch", "measure_activations", "measure_batches", "watch"]
