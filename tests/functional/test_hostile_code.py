"""Targets that would like their code to run: nothing of them does, unless it is trusted."""

import builtins
import json
import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import huggingface_hub
import pytest
import torch
import transformers
from transformers import dynamic_module_utils
from transformers.integrations import hub_kernels, peft
from typer.testing import CliRunner

import normscope
from normscope.activations.checkpoint import MeasureOptions, measure_checkpoint
from normscope.checkpoint import Checkpoint, CheckpointKind, resolve_checkpoint
from normscope.cli.app import app
from normscope.errors import FailureKind, NormscopeError
from normscope.model import load_model, sealed
from normscope.model.remote_code import own_revision, tell_code
from normscope.pipeline import InspectOptions, inspect_checkpoint
from normscope.weights.report import WeightsLevel
from saved_models import save_bert

LLAMA = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "vocab_size": 40,
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
}
CODE = """
from pathlib import Path
Path({marker!r}).touch()
import torch
from transformers import PretrainedConfig, PreTrainedModel

class EvilConfig(PretrainedConfig):
    model_type = "evil"

class EvilModel(PreTrainedModel):
    config_class = EvilConfig

    def __init__(self, config):
        super().__init__(config)
        self.norm, self.linear = torch.nn.LayerNorm(8), torch.nn.Linear(8, 8)
        self.post_init()

    def forward(self, inputs_embeds):
        return inputs_embeds + self.linear(self.norm(inputs_embeds))
"""
EVIL = {
    "model_type": "evil",
    "hidden_size": 8,
    "architectures": ["EvilModel"],
    "auto_map": {"AutoConfig": "evil_code.EvilConfig", "AutoModel": "evil_code.EvilModel"},
}


@pytest.fixture
def marker(tmp_path: Path) -> Path:
    """Return a file that is there once a target's code has run."""
    return tmp_path / "it-ran"


@pytest.fixture(autouse=True)
def _no_question_and_no_network(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Tell of both after the test: transformers takes every error for an answer."""
    told: list[str] = []

    def asked(*words: object) -> str:
        told.append(f"a question was put: {words}")
        return "n"

    def reached(*_: object, **__: object) -> None:
        told.append("the Hub was asked")
        raise OSError("no network")

    monkeypatch.setattr(builtins, "input", asked)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr("socket.socket.connect", reached)
    monkeypatch.setattr("socket.getaddrinfo", reached)
    yield
    assert told == []


def folder(tmp_path: Path, config: object, marker: Path) -> Path:
    place = tmp_path / "target"
    place.mkdir()
    (place / "config.json").write_text(json.dumps(config))
    (place / "evil_code.py").write_text(CODE.format(marker=str(marker)))
    return place


def failure(target: Path, **options: object) -> NormscopeError:
    with pytest.raises(NormscopeError) as caught:
        measure_checkpoint(str(target), MeasureOptions(texts=("the norm",), **options))
    return caught.value


def test_a_model_of_its_own_code_is_refused(tmp_path: Path, marker: Path) -> None:
    answer = inspect_checkpoint(str(folder(tmp_path, EVIL, marker)))
    assert answer.kind is FailureKind.REMOTE_CODE
    assert not marker.exists()


@pytest.mark.parametrize(
    "model_type", ["llama", "trocr"], ids=["a native class", "a type without an AutoModel"]
)
def test_code_beside_a_known_type_is_left_alone(
    model_type: str, tmp_path: Path, marker: Path
) -> None:
    own = {"AutoConfig": "evil_code.EvilConfig", "AutoModel": "evil_code.EvilModel"}
    config = {**LLAMA, "model_type": model_type, "architectures": ["EvilModel"], "auto_map": own}
    answer = inspect_checkpoint(str(folder(tmp_path, config, marker)))
    assert answer.model.class_name in {"LlamaModel", "TrOCRForCausalLM"}
    assert not marker.exists()


@pytest.mark.parametrize("name", ["pipeline", "Trainer", "PreTrainedModel", "AutoModel", "os", "_"])
def test_an_architecture_is_a_model_of_a_family_or_nothing(name: str, tmp_path: Path) -> None:
    answer = inspect_checkpoint(
        str(folder(tmp_path, {**LLAMA, "architectures": [name]}, tmp_path / "never"))
    )
    assert answer.model.class_name == "LlamaModel"


def test_trusted_code_is_named_before_it_runs(tmp_path: Path, marker: Path) -> None:
    said: list[tuple[str, bool]] = []
    answer = inspect_checkpoint(
        str(folder(tmp_path, EVIL, marker)),
        InspectOptions(
            trust_remote_code=True, tell=lambda text: said.append((text, marker.exists()))
        ),
    )
    assert answer.model.class_name == "EvilModel"
    assert marker.exists()
    ((text, ran_before),) = said
    assert f"--trust-remote-code runs evil_code.py of the folder {tmp_path / 'target'}" in text
    assert not ran_before


def test_code_of_the_hub_is_named_with_its_revision() -> None:
    own = {"AutoConfig": "conf.C", "AutoModel": "mod.M", "AutoTokenizer": ["tok.T", None]}
    other = {"AutoModelForCausalLM": "else/where--more.M"}
    said: list[str] = []
    checkpoint = Checkpoint(
        target="org/name@main",
        kind=CheckpointKind.HUB,
        repository="org/name",
        directory=Path("/cache/snapshots/0123abc"),
    )
    tell_code(checkpoint, {**own, **other}, said.append)
    assert said == [
        "org/name@main: --trust-remote-code runs conf.py, mod.py, tok.py of org/name at 0123abc",
        "org/name@main: --trust-remote-code runs more.py of else/where at its newest revision",
    ]
    assert own_revision(checkpoint, own) == "0123abc"
    assert own_revision(checkpoint, {**own, **other}) is None


def test_the_command_names_it_on_stderr_and_quiet_does_not(tmp_path: Path, marker: Path) -> None:
    target = str(folder(tmp_path, EVIL, marker))
    arguments = ["inspect", target, "--trust-remote-code", "-f", "json"]
    told = CliRunner().invoke(app, arguments)
    assert "runs evil_code.py of the folder" in told.stderr
    assert CliRunner().invoke(app, [*arguments, "--quiet"]).stderr == ""


def test_a_tokenizer_of_its_own_code_is_refused(tmp_path: Path, marker: Path) -> None:
    target = Path(save_bert(tmp_path / "bert"))
    (target / "evil_code.py").write_text(CODE.format(marker=str(marker)))
    for name in ("tokenizer.json", "config.json"):
        (target / name).rename(target / f"{name}.away")
    # A type that has no tokenizer of transformers' own.
    config = json.loads((target / "config.json.away").read_text())
    (target / "config.json").write_text(json.dumps({**config, "model_type": "vit"}))
    (target / "tokenizer_config.json").write_text(
        json.dumps(
            {
                "tokenizer_class": "EvilTokenizer",
                "auto_map": {"AutoTokenizer": ["evil_code.EvilTokenizer", None]},
            }
        )
    )
    with pytest.raises(NormscopeError) as caught:
        normscope.model.load_tokenizer(resolve_checkpoint(str(target)))
    assert caught.value.kind is FailureKind.REMOTE_CODE
    assert not marker.exists()


def test_transformers_puts_no_question_of_its_own() -> None:
    with sealed("it", trust_remote_code=False), pytest.raises(ValueError, match="custom code"):
        dynamic_module_utils.resolve_trust_remote_code(None, "it", False, True)


def test_a_repository_that_only_a_config_names_is_not_asked_for(tmp_path: Path) -> None:
    with sealed("it", trust_remote_code=False), pytest.raises(OSError, match=r"offline|cached"):
        transformers.AutoConfig.from_pretrained("stranger/model")
    with (
        sealed("it", trust_remote_code=False),
        pytest.raises(NormscopeError, match="code that is not transformers' own"),
    ):
        dynamic_module_utils.get_class_in_module("EvilModel", tmp_path / "evil_code.py")


@pytest.fixture
def kernels(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return what is fetched of kernels, which would run."""
    fetched: list[str] = []

    def fetch(name: str, **_: object) -> None:
        fetched.append(name)
        raise OSError("no such kernel")

    monkeypatch.setattr(hub_kernels, "is_kernels_available", lambda: True)
    monkeypatch.setattr(hub_kernels, "get_kernel_hub", fetch, raising=False)
    return fetched


@pytest.mark.parametrize(
    "key", ["_attn_implementation", "attn_implementation", "_attn_implementation_internal"]
)
def test_a_config_names_no_kernel(key: str, tmp_path: Path, kernels: list[str]) -> None:
    text = {**LLAMA, key: "stranger/kernel"}
    vision = {"model_type": "clip_vision_model", "hidden_size": 16, "intermediate_size": 32}
    vision |= {"num_hidden_layers": 2, "num_attention_heads": 2, "image_size": 8, "patch_size": 4}
    whole = {"model_type": "llava", "text_config": text, "vision_config": {**vision, key: "a/b"}}
    for number, config in enumerate((text, whole)):
        place = tmp_path / str(number)
        place.mkdir()
        (place / "config.json").write_text(json.dumps(config))
        assert inspect_checkpoint(str(place)).placement == "pre-norm"
    assert kernels == []


def test_a_kernel_that_is_asked_for_all_the_same_is_refused(kernels: list[str]) -> None:
    with (
        sealed("it", trust_remote_code=False),
        pytest.raises(ValueError, match="code that is not transformers' own"),
    ):
        hub_kernels.load_and_register_attn_kernel("stranger/kernel")
    assert kernels == []


def test_only_the_folders_own_weights_are_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = Path(save_bert(tmp_path / "bert"))
    other = Path(save_bert(tmp_path / "other", seed=1))
    shutil.copy(other / "model.safetensors", target / "other.safetensors")
    config = json.loads((target / "config.json").read_text())
    config |= {"transformers_weights": "other.safetensors", "_name_or_path": str(other)}
    (target / "config.json").write_text(json.dumps(config))
    # An adapter beside the model, with the package that would apply it.
    (target / "adapter_config.json").write_text(
        json.dumps({"base_model_name_or_path": str(other), "peft_type": "LORA"})
    )
    monkeypatch.setattr(peft, "is_peft_available", lambda: True)
    loaded = load_model(resolve_checkpoint(str(target))).module
    torch.manual_seed(0)
    expected = transformers.BertModel(loaded.config)
    assert torch.equal(
        loaded.embeddings.word_embeddings.weight, expected.embeddings.word_embeddings.weight
    )


@pytest.mark.parametrize(
    "quantization",
    [
        {"quant_method": "stranger"},
        {"quant_method": ["gptq"]},
        {"quant_method": {"a": 1}},
        {"quant_method": None},
        {},
        {"quant_method": "torchao", "quant_type": {"default": {"_type": "os.system", "_data": 1}}},
        {"quant_method": "bitsandbytes", "bnb_4bit_compute_dtype": "__import__"},
    ],
    ids=str,
)
def test_a_way_of_quantizing_is_known_or_refused(
    quantization: dict[str, object], tmp_path: Path
) -> None:
    target = Path(save_bert(tmp_path / "bert"))
    config = json.loads((target / "config.json").read_text())
    (target / "config.json").write_text(json.dumps({**config, "quantization_config": quantization}))
    assert inspect_checkpoint(str(target)).placement == "post-norm"
    assert failure(target).kind is FailureKind.MISSING_DEPENDENCY


class _Runs:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        return Path.touch, (self.path,)


def test_pickled_weights_do_not_run(tmp_path: Path, marker: Path) -> None:
    place = folder(tmp_path, LLAMA, marker)
    torch.save({"model.norm.weight": _Runs(marker)}, place / "pytorch_model.bin")
    assert inspect_checkpoint(str(place)).placement == "pre-norm"
    for asked in (WeightsLevel.HEADERS, WeightsLevel.NORMS):
        answer = inspect_checkpoint(str(place), InspectOptions(weights=asked))
        assert answer.kind is FailureKind.UNSAFE_WEIGHTS
    assert failure(place).kind is FailureKind.UNSAFE_WEIGHTS
    assert not marker.exists()
    with (place / "pytorch_model.bin").open("rb") as file, pytest.raises(Exception):  # noqa: B017, PT011
        pickle.load(file)


@pytest.mark.parametrize("base", ["py:evil_base:factory", "type:llama", "demo:pre-norm"])
def test_an_adapter_names_a_folder_or_a_repository_as_its_base(
    base: str, tmp_path: Path, marker: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "evil_base.py").write_text(
        f"from pathlib import Path\ndef factory():\n    Path({str(marker)!r}).touch()\n"
    )
    place = tmp_path / "adapter"
    place.mkdir()
    (place / "adapter_config.json").write_text(json.dumps({"base_model_name_or_path": base}))
    answer = inspect_checkpoint(str(place))
    assert answer.kind is FailureKind.ADAPTER_ONLY
    assert not marker.exists()


def test_the_hint_of_an_adapter_can_be_pasted(tmp_path: Path) -> None:
    (tmp_path / "adapter_config.json").write_text(
        json.dumps({"base_model_name_or_path": "a/b; touch it-ran"})
    )
    with pytest.raises(NormscopeError) as caught:
        resolve_checkpoint(str(tmp_path))
    assert caught.value.hint == "normscope inspect 'a/b; touch it-ran'"


PLANTED = ("torch", "transformers", "numpy", "typer", "rich", "json", "signal", "multiprocessing")


def test_nothing_is_imported_from_where_it_is_called(tmp_path: Path) -> None:
    for name in (*PLANTED, "sitecustomize", "usercustomize", "conftest", "safetensors"):
        (tmp_path / f"{name}.py").write_text(
            "from pathlib import Path\nPath(__file__).with_suffix('.ran').touch()\n"
        )
    (tmp_path / "evil.pth").write_text("import torch\n")
    (tmp_path / "config.json").write_text(json.dumps(LLAMA))
    arguments = ["inspect", "config.json", "demo:pre-norm", "--jobs", "2", "-f", "jsonl"]
    called = subprocess.run(
        [sys.executable, "-m", "normscope", *arguments, "--no-cache"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(normscope.__file__).parents[1])},
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert (called.returncode, called.stderr) == (0, "")
    assert len(called.stdout.splitlines()) == 2
    assert [path.name for path in tmp_path.glob("*.ran")] == []
