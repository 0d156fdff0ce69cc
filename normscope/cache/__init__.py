"""Checkpoint -> the inspection that an earlier run kept, and what was judged; without torch."""

from normscope.cache.audited import keep_audited, recall_audited
from normscope.cache.entries import keep_inspection, recall_inspection
from normscope.cache.key import cache_key
from normscope.cache.steady import code_stays

__all__ = [
    "cache_key",
    "code_stays",
    "keep_audited",
    "keep_inspection",
    "recall_audited",
    "recall_inspection",
]
