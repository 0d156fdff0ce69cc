"""Stored norm parameters -> plain values for JSON."""

from normscope.render.plain import Json, number
from normscope.weights.report import AdapterReport, StoredParameter, ValueFacts, WeightsReport


def stored_document(stored: WeightsReport) -> Json:
    """Return what the checkpoint's files say, as plain values."""
    return {
        "container": stored.container,
        "files": stored.files,
        "file_bytes": stored.file_bytes,
        "bytes_read": stored.bytes_read,
        "parameters": [_parameter(item) for item in stored.parameters],
        "unexpected": list(stored.unexpected),
        "quantized": stored.quantized,
        "stated_eps": [number(eps) for eps in stored.stated_eps],
    }


def _parameter(item: StoredParameter) -> Json:
    return {
        "name": item.name,
        "is_gain": item.is_gain,
        "stored_name": item.stored_name,
        "file": item.file,
        "dtype": item.dtype,
        "shape": None if item.shape is None else list(item.shape),
        "problem": None if item.problem is None else item.problem.value,
        "converted": item.converted,
        "added": number(item.added),
        "tied_to": item.tied_to,
        "values": None if item.values is None else _values(item.values),
    }


def _values(facts: ValueFacts) -> Json:
    return {
        "count": facts.count,
        "mean": number(facts.mean),
        "effective_mean": number(facts.effective_mean),
        "spread": number(facts.spread),
        "minimum": number(facts.minimum),
        "maximum": number(facts.maximum),
        "non_finite": facts.non_finite,
        "dead": facts.dead,
        "outliers": facts.outliers,
        "largest_channel": facts.largest_channel,
        "lost_in_bfloat16": facts.lost_in_bfloat16,
        "bfloat16_error": number(facts.bfloat16_error),
    }


def adapter_document(adapter: AdapterReport) -> Json:
    """Return what an adapter trains, as plain values."""
    return {"base": adapter.base, "trains": list(adapter.trains), "tensors": adapter.tensors}
