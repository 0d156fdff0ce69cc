"""Every reader of files that others write: a good file, how it is read, and what it may raise."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import save

from golden.audit_reports import everything
from normscope.audit.baseline import baseline_text, read_baseline
from normscope.audit.join_runs import joined_report
from normscope.audit.lock import lock_text, read_lock
from normscope.audit.policy_file import read_policy
from normscope.checkpoint import resolve_checkpoint
from normscope.cli.audit_formats import AuditFormat, audit_text
from normscope.cli.text_files import open_texts
from normscope.errors import NormscopeError, UsageError
from normscope.limits import Limits
from normscope.render.page import PLAIN
from normscope.weights.files import find_weight_files
from normscope.weights.gguf_file import GgufFile
from normscope.weights.safetensors_folder import SafetensorsFolder
from specimens.gguf_files import write_llama_like


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """What reads one kind of file."""

    name: str
    """Of the file."""
    content: Callable[[Path], bytes]
    """Makes a good one; may use the folder."""
    read: Callable[[Path], object]
    errors: tuple[type[Exception], ...] = (NormscopeError, UsageError)


def _safetensors(_folder: Path) -> bytes:
    tensors = {"a.weight": torch.ones(3), "b.weight": torch.ones(2, 2).half(), "c": torch.ones(())}
    return save(tensors, metadata={"format": "pt"})


def _read_folder(path: Path) -> object:
    folder = SafetensorsFolder("t", find_weight_files("t", path.parent))
    return list(folder.read(folder.describe()))


def _gguf(folder: Path) -> bytes:
    path = folder / "made.gguf"
    write_llama_like(path)
    content = path.read_bytes()
    path.unlink()
    return content


def _read_gguf(path: Path) -> object:
    file = GgufFile("t", path)
    return list(file.read(file.describe()))


def _index(folder: Path) -> bytes:
    (folder / "model-1.safetensors").write_bytes(_safetensors(folder))
    names = ("a.weight", "b.weight", "c")
    document = {
        "metadata": {"total_size": 24},
        "weight_map": dict.fromkeys(names, "model-1.safetensors"),
    }
    return json.dumps(document).encode()


def _config(_folder: Path) -> bytes:
    document = {
        "model_type": "llama",
        "hidden_size": 16,
        "architectures": ["LlamaModel"],
        "a": [{}],
    }
    return json.dumps(document).encode()


def _facts(_folder: Path) -> bytes:
    targets = {t.target: t.facts for t in everything().targets if t.facts is not None}
    return lock_text(targets).encode()


def _baseline(_folder: Path) -> bytes:
    return baseline_text(everything().gone).encode()


def _policy(_folder: Path) -> bytes:
    return b"""[[family]]
name = "encoders"
targets = ["type:bert", "./x/*"]
expect = { placement = "post-norm", eps = 1e-12, gain = "w" }
select = ["NS1"]
[[family.override]]
targets = ["type:roberta"]
expect = { eps = 1e-5 }
[stats]
input = ["a"]
"""


def _lines(_folder: Path) -> bytes:
    return audit_text(everything(), AuditFormat.JSONL, PLAIN).encode()


def _texts(_folder: Path) -> bytes:
    return b'{"text": "the norm"}\n\n{"text": "keeps \\u00e9", "n": [1, {}]}\n'


def _read_lines(path: Path) -> object:
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError("not text") from error
    joined = joined_report([("x", text)])
    return [audit_text(joined.report, written, PLAIN) for written in AuditFormat]


READERS = (
    Reader(name="model.safetensors", content=_safetensors, read=_read_folder),
    Reader(name="model.safetensors.index.json", content=_index, read=_read_folder),
    Reader(name="x.gguf", content=_gguf, read=_read_gguf),
    Reader(
        name="config.json",
        content=_config,
        read=lambda path: resolve_checkpoint(str(path.parent), limits=Limits()),
    ),
    Reader(name="normscope.toml", content=_policy, read=read_policy),
    Reader(name="normscope.lock", content=_facts, read=read_lock),
    Reader(name="baseline.json", content=_baseline, read=read_baseline),
    Reader(name="report.jsonl", content=_lines, read=_read_lines),
    Reader(
        name="texts.jsonl",
        content=_texts,
        read=lambda path: list(open_texts(path, None, again=False)),
    ),
)
