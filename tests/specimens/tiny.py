"""The config of a model so small that a test may build it, and a policy for a folder of such."""

import json
from pathlib import Path

TINY = {
    "model_type": "llama",
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_attention_heads": 2,
    "num_hidden_layers": 2,
    "num_key_value_heads": 2,
    "vocab_size": 64,
}
"""A Llama of two layers, eps 1e-6 in all norms."""


def write_config(folder: Path, **changes: object) -> Path:
    """Write the config, with what is changed, into a folder that is made; return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps({**TINY, **changes}), encoding="utf-8")
    return folder


def tiny_policy(placement: str = "pre-norm") -> str:
    """Return a policy for all checkpoints in `checkpoints`."""
    return (
        '[[family]]\nname = "llamas"\ntargets = ["checkpoints/*"]\n'
        f'expect = {{ placement = "{placement}", eps = 1e-6 }}\n'
    )
