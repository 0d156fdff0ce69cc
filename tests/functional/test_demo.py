"""The demo checkpoints: they load offline, they learned their text, and training is repeatable."""

from __future__ import annotations

import json
import math
import platform
import socket
import subprocess
import sys
from collections import Counter
from itertools import pairwise
from pydoc_data.topics import topics
from typing import TYPE_CHECKING, Final, NoReturn

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

from normscope.demo import DEMO_NAMES, corpus, demo_path, train

if TYPE_CHECKING:
    from pathlib import Path

    from transformers import OPTForCausalLM, PreTrainedTokenizerFast

FLAG: Final = "do_layer_norm_before"
MAX_FILE_BYTES: Final = 1_000_000
# Of a topic that the split holds out; long enough for its unigram entropy to mean something. ASCII,
# so that it can be cut at any byte.
SLICE: Final = topics["comparisons"].encode("ascii", "ignore")[: 16 * 383]
# In nats per byte.
CLEAR_MARGIN: Final = 1.2

each_demo = pytest.mark.parametrize("name", DEMO_NAMES)


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> NoReturn:
        pytest.fail("a demo checkpoint reached for the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)


def load_model(name: str) -> OPTForCausalLM:
    return AutoModelForCausalLM.from_pretrained(demo_path(name), local_files_only=True).eval()


def load_tokenizer(name: str) -> PreTrainedTokenizerFast:
    return AutoTokenizer.from_pretrained(demo_path(name), local_files_only=True)


def pieces(text: bytes) -> list[str]:
    # With the BOS token, each fills the 384 positions of the models.
    return [text[start : start + 383].decode() for start in range(0, len(text), 383)]


@torch.inference_mode()
def nats_per_byte(model: OPTForCausalLM, tokenizer: PreTrainedTokenizerFast, text: bytes) -> float:
    ids = tokenizer(pieces(text), return_tensors="pt")["input_ids"]
    assert ids.shape == (len(text) // 383, 384)
    log_probabilities = model(input_ids=ids).logits[:, :-1].log_softmax(-1)
    return -float(log_probabilities.gather(-1, ids[:, 1:, None]).mean())


def entropy(text: bytes) -> float:
    shares = [count / len(text) for count in Counter(text).values()]
    return -sum(share * math.log(share) for share in shares)


@torch.inference_mode()
def stream_variances(name: str) -> list[float]:
    """Return the mean over positions of the variance over features, entering each block."""
    model, tokenizer = load_model(name), load_tokenizer(name)
    entering: list[float] = []

    def record(_: torch.nn.Module, arguments: tuple[torch.Tensor, ...]) -> None:
        entering.append(float(arguments[0].var(-1, correction=0).mean()))

    for block in model.model.decoder.layers:
        block.register_forward_pre_hook(record)
    model(**tokenizer(pieces(SLICE), return_tensors="pt"))
    return entering


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(LookupError, match=r"'sandwich-norm'.*pre-norm, post-norm"):
        demo_path("sandwich-norm")


def test_locating_a_checkpoint_does_not_import_torch() -> None:
    program = "import sys, normscope.demo as d; d.demo_path('pre-norm'); print(*sys.modules)"
    result = subprocess.run(
        [sys.executable, "-P", "-c", program], capture_output=True, text=True, check=True
    )
    assert "normscope.demo" in result.stdout.split()
    assert not {"torch", "transformers"} & set(result.stdout.split())


def test_the_configurations_differ_in_the_flag_alone() -> None:
    pre, post = (
        AutoConfig.from_pretrained(demo_path(name), local_files_only=True).to_dict()
        for name in DEMO_NAMES
    )
    assert {key for key in pre | post if pre.get(key) != post.get(key)} == {FLAG, "_name_or_path"}
    assert (pre[FLAG], post[FLAG]) == (True, False)


@each_demo
def test_the_weights_are_float32_and_of_the_configured_shape(name: str) -> None:
    model = load_model(name)
    assert type(model).__module__ == "transformers.models.opt.modeling_opt"
    assert model.config.word_embed_proj_dim == model.config.hidden_size == 64
    assert len(model.model.decoder.layers) == 4
    assert model.lm_head.weight is model.model.decoder.embed_tokens.weight
    assert (model.model.decoder.final_layer_norm is not None) == (name == "pre-norm")
    stored = load_file(demo_path(name) / "model.safetensors")
    assert {tensor.dtype for tensor in stored.values()} == {torch.float32}


@each_demo
def test_no_file_is_larger_than_a_million_bytes(name: str) -> None:
    sizes = {path.name: path.stat().st_size for path in demo_path(name).iterdir()}
    assert {"config.json", "model.safetensors", "tokenizer.json"} <= sizes.keys()
    assert max(sizes.values()) <= MAX_FILE_BYTES


@each_demo
@pytest.mark.parametrize(
    "text",
    [
        "",
        " leading, trailing and  double spaces .\r\n\t",
        "naïve 漢字 🙂\u200d↔\ufe0f e\u0301",
        "don 't join <s> what </s> was <pad> apart",
        "\x00\x7f\ufeff",
        "".join(map(chr, [*range(0xD800), *range(0xE000, 0x11000)])),
    ],
    ids=["empty", "spaces", "unicode", "spelt specials", "controls", "the whole plane"],
)
def test_any_text_comes_back_from_its_bytes(name: str, text: str) -> None:
    tokenizer = load_tokenizer(name)
    ids = tokenizer(text)["input_ids"]
    assert ids[0] == tokenizer.bos_token_id
    assert len(ids) == 1 + len(text.encode())
    assert not set(ids[1:]) & set(tokenizer.all_special_ids)
    assert tokenizer.decode(ids, skip_special_tokens=True) == text


@each_demo
def test_the_special_tokens_are_those_of_the_configuration(name: str) -> None:
    tokenizer, config = load_tokenizer(name), load_model(name).config
    ids = [tokenizer.bos_token_id, tokenizer.eos_token_id, tokenizer.pad_token_id]
    assert ids == [config.bos_token_id, config.eos_token_id, config.pad_token_id]
    assert len(set(ids)) == 3
    assert len(tokenizer) == config.vocab_size == 259
    assert tokenizer.model_max_length == config.max_position_embeddings == 384
    padded = tokenizer(["a", "abc"], padding=True)
    assert padded["input_ids"][0][2:] == [tokenizer.pad_token_id] * 2
    assert padded["attention_mask"][0] == [1, 1, 0, 0]


@each_demo
def test_held_out_text_is_predicted_far_better_than_by_byte_frequency(name: str) -> None:
    trained = nats_per_byte(load_model(name), load_tokenizer(name), SLICE)
    assert trained < entropy(SLICE) - CLEAR_MARGIN


@each_demo
def test_a_fresh_model_of_the_same_configuration_is_not(name: str) -> None:
    config = AutoConfig.from_pretrained(demo_path(name), local_files_only=True)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        fresh = AutoModelForCausalLM.from_config(config).eval()
    assert nats_per_byte(fresh, load_tokenizer(name), SLICE) > entropy(SLICE)


def test_the_stream_of_the_pre_norm_model_grows_from_block_to_block() -> None:
    variances = stream_variances("pre-norm")
    assert len(variances) == 4
    assert all(later > 1.25 * earlier for earlier, later in pairwise(variances))
    # The embeddings, which enter the first block, are far smaller than what any block adds.
    assert variances[1] > 20 * variances[0]
    assert variances[3] > 2 * variances[1]


def test_the_stream_of_the_post_norm_model_stays_where_the_norms_put_it() -> None:
    embedded, *normalised = stream_variances("post-norm")
    assert len(normalised) == 3
    # No norm stands before the first block, so the embeddings keep their own scale there.
    assert embedded < 0.1
    assert min(normalised) > 0.8
    assert max(normalised) < 1.25


def test_the_training_text_holds_no_paragraph_of_the_held_out_text() -> None:
    text = corpus.load_corpus()
    parts = [
        {" ".join(part.split()) for topic in texts for part in topic.decode().split("\n\n")}
        for texts in (text.train, text.held_out)
    ]
    assert not parts[0] & parts[1]
    assert topics["comparisons"].encode() in text.held_out
    sizes = [sum(map(len, texts)) for texts in (text.train, text.held_out)]
    assert 0.05 < sizes[1] / sum(sizes) < 0.2


@each_demo
def test_the_recorded_loss_is_that_of_the_shipped_weights(name: str) -> None:
    figures = json.loads((demo_path(name).parent / "training.json").read_text(encoding="utf-8"))
    # Another Python has somewhat other help topics.
    close = 1e-3 if figures["python"] == platform.python_version() else 0.25
    held_out = corpus.load_corpus().held_out
    assert figures["unigram_entropy"] == pytest.approx(entropy(b"".join(held_out)), abs=close)
    with train.one_thread():
        loss = train.bytes_loss(load_model(name), held_out, figures["recipe"]["window"])
    assert figures["models"][name]["held_out_loss"] == pytest.approx(loss, abs=close)


def test_the_card_is_filled_in_from_the_recorded_figures() -> None:
    directory = demo_path("pre-norm").parent
    figures = json.loads((directory / "training.json").read_text(encoding="utf-8"))
    assert (directory / "README.md").read_text(encoding="utf-8") == train.render_card(figures)


def test_training_twice_writes_the_same_bytes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written = []
    for run in ("first", "second"):
        torch.rand(1)  # Leave the global generator in another state than the other run found.
        assert train.main([str(tmp_path / run), "--steps", "3"]) == 0
        files = [path for path in (tmp_path / run).rglob("*") if path.is_file()]
        written.append({path.relative_to(tmp_path / run): path.read_bytes() for path in files})
    assert written[0] == written[1]
    shipped = {path.name for path in demo_path("pre-norm").iterdir()}
    names = {path.name for path in written[0]}
    # What transformers 4 writes into this file is in tokenizer_config.json as well.
    assert names - {"special_tokens_map.json"} == shipped | {"training.json", "README.md"}
    assert capsys.readouterr().out.encode() == 2 * (tmp_path / "first/training.json").read_bytes()


def test_training_takes_at_least_one_step(tmp_path: Path) -> None:
    with pytest.raises(SystemExit):
        train.main([str(tmp_path), "--steps", "0"])
