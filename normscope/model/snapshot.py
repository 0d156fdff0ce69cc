"""Checkpoint of the Hub -> the folder that holds its weights and its tokenizer."""

from pathlib import Path

from normscope.checkpoint import Checkpoint
from normscope.errors import FailureKind, NormscopeError


def fetched_directory(checkpoint: Checkpoint) -> Path:
    """Bring a repository's safetensors and tokenizer into the cache."""
    import huggingface_hub
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    offline = checkpoint.offline or bool(huggingface_hub.constants.HF_HUB_OFFLINE)
    try:
        return Path(
            huggingface_hub.snapshot_download(
                checkpoint.repository or "",
                revision=checkpoint.revision,
                local_files_only=offline,
                allow_patterns=["*.safetensors", "*.json", "*.model", "*.txt", "*.py"],
            )
        )
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
        raise NormscopeError(
            FailureKind.OFFLINE,
            f"{checkpoint.target}: its weights are not in the cache and cannot be fetched",
            "check the connection, or give a local directory",
        ) from error
