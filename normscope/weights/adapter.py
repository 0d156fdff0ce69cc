"""Adapter + norm parameters -> which of them it trains, from its file's header."""

from collections.abc import Iterable, Iterator, Sequence

from normscope.checkpoint import ADAPTER_CONFIG_NAME, Checkpoint
from normscope.weights.files import WeightFiles, read_json
from normscope.weights.report import AdapterReport, WantedParameter
from normscope.weights.safetensors_folder import SafetensorsFolder

_WEIGHTS = "adapter_model.safetensors"


def read_adapter(checkpoint: Checkpoint, wanted: Sequence[WantedParameter]) -> AdapterReport | None:
    """Return which norm parameters of its base model an adapter brings values for.

    An adapter's tensors have the base model's names with further parts between theirs. None for a
    checkpoint that is none. Raises `NormscopeError` of kind `corrupt` for a damaged file.
    """
    folder = checkpoint.adapter
    if folder is None:
        return None
    path = folder / _WEIGHTS
    files = WeightFiles(paths=(path,) if path.is_file() else ())
    stored = SafetensorsFolder(checkpoint.target, files).describe()
    config = read_json(checkpoint.target, folder / ADAPTER_CONFIG_NAME)
    return AdapterReport(
        base=str(config.get("base_model_name_or_path")),
        trains=tuple(_trained(stored, wanted)),
        tensors=len(stored),
    )


def _trained(names: Iterable[str], wanted: Sequence[WantedParameter]) -> Iterator[str]:
    by_last: dict[str, list[str]] = {}
    for name in names:
        by_last.setdefault(name.rpartition(".")[2], []).append(name)
    for parameter in wanted:
        candidates = by_last.get(parameter.name.rpartition(".")[2], [])
        if any(_holds(name, parameter.name) for name in candidates):
            yield parameter.name


def _holds(longer: str, shorter: str) -> bool:
    """Tell whether all parts of one name stand in the other, in their order."""
    parts = iter(longer.split("."))
    return all(part in parts for part in shorter.split("."))
