"""Checkpoint -> the inspection that an earlier run kept, without torch."""

from normscope.cache.entries import keep_inspection, recall_inspection
from normscope.cache.key import cache_key

__all__ = ["cache_key", "keep_inspection", "recall_inspection"]
