"""Imported once, by the process that workers are forked from: all that an inspection needs."""

import gc
from importlib import import_module

from normscope.cli.collector import rare_collections
from normscope.cli.libraries import kept_off_stdout

NEEDED = (
    "normscope.cli.worker",
    "normscope.cli.audit_question",
    "normscope.cli.inspect_request",
    "normscope.auditing",
    "normscope.pipeline",
    "normscope.inputs",
    "normscope.model",
    "normscope.tracing",
)

with rare_collections(), kept_off_stdout(quiet=True, verbose=False):
    for name in NEEDED:
        import_module(name)
gc.freeze()  # no worker looks through the libraries, nor copies the memory that they share
