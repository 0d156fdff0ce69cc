"""Train the two demo checkpoints: the same byte-level model, pre-norm and post-norm.

Both models see the same text in the same order with the same recipe; one configuration flag,
``do_layer_norm_before``, is all that separates them. The text is that of the interactive help of
the running Python (``pydoc_data.topics``), so nothing is downloaded, and the figures depend on
the version of Python that runs this program.

Usage: ``python -m normscope.demo.train OUTPUT_DIR [--steps N]``
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import math
import platform
import string
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import torch
import transformers
from torch.nn import functional as F
from transformers import OPTConfig, OPTForCausalLM

from normscope.demo import DEMO_NAMES
from normscope.demo.corpus import HELD_OUT_TOPICS, Corpus, load_corpus, unigram_entropy
from normscope.demo.tokenizer import (
    BOS_ID,
    EOS_ID,
    FIRST_BYTE_ID,
    PAD_ID,
    VOCABULARY,
    build_tokenizer,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from transformers import PreTrainedTokenizerFast

PROGRESS_EVERY: Final = 200
CARD_TEMPLATE: Final = Path(__file__).with_name("card.template.md")
FIGURES_NAME: Final = "training.json"
CARD_NAME: Final = "README.md"


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Recipe:
    """Every choice of the training, equal for both models."""

    blocks: int = 4
    hidden: int = 64
    ffn: int = 256
    heads: int = 4
    window: int = 384
    init_std: float = 0.05
    position_amplitude: float = 0.3
    seed: int = 20240
    steps: int = 4000
    batch: int = 4
    peak_rate: float = 5e-3
    warmup_fraction: float = 0.1
    weight_decay: float = 0.05
    clip: float = 1.0


def build_model(name: str, recipe: Recipe) -> OPTForCausalLM:
    """Return the untrained model ``name``, one of ``DEMO_NAMES``, drawn from the recipe's seed.

    The learned positions start as sinusoids rather than noise: they are trained like every other
    weight, but a model this small takes far longer to find its neighbours from noise.
    """
    config = OPTConfig(
        vocab_size=VOCABULARY,
        hidden_size=recipe.hidden,
        word_embed_proj_dim=recipe.hidden,
        num_hidden_layers=recipe.blocks,
        ffn_dim=recipe.ffn,
        num_attention_heads=recipe.heads,
        max_position_embeddings=recipe.window,
        do_layer_norm_before=name == "pre-norm",
        dropout=0.0,
        init_std=recipe.init_std,
        pad_token_id=PAD_ID,
        bos_token_id=BOS_ID,
        eos_token_id=EOS_ID,
        tie_word_embeddings=True,
    )
    # The initial weights come from the global generator; the caller's state is put back.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(recipe.seed)
        model = OPTForCausalLM(config)
    positions = model.model.decoder.embed_positions.weight
    with torch.no_grad():
        positions.copy_(recipe.position_amplitude * _sinusoids(*positions.shape))
    return model


def _sinusoids(count: int, width: int) -> torch.Tensor:
    # (count, width); the wavelengths run from 2 pi to about 2000 pi positions.
    rates = 1000.0 ** (-torch.arange(width // 2) / (width // 2))
    angles = torch.arange(count)[:, None] * rates
    return torch.cat([angles.sin(), angles.cos()], dim=1)


def token_stream(documents: Sequence[bytes]) -> torch.Tensor:
    """Return the documents as one vector of token ids, an EOS token after each."""
    ids: list[int] = []
    for document in documents:
        ids += [FIRST_BYTE_ID + byte for byte in document]
        ids.append(EOS_ID)
    return torch.tensor(ids)


def draw_batch(stream: torch.Tensor, recipe: Recipe, generator: torch.Generator) -> torch.Tensor:
    """Return random windows of the stream, each after a BOS token, of shape (batch, window)."""
    length = recipe.window - 1
    starts = torch.randint(len(stream) - length + 1, (recipe.batch, 1), generator=generator)
    windows = stream[starts + torch.arange(length)]
    return F.pad(windows, (1, 0), value=BOS_ID)


def learning_rate(step: int, recipe: Recipe) -> float:
    """Return the rate of ``step``, counted from 0: a linear warmup, then half a cosine to 0."""
    warmup = max(1, round(recipe.steps * recipe.warmup_fraction))
    if step < warmup:
        return recipe.peak_rate * (step + 1) / warmup
    progress = (step - warmup) / max(1, recipe.steps - warmup)
    return recipe.peak_rate * 0.5 * (1 + math.cos(math.pi * progress))


def build_optimizer(model: OPTForCausalLM, recipe: Recipe) -> torch.optim.AdamW:
    """Return AdamW over the model; biases and the gains of the norms are not decayed."""
    matrices = [weight for weight in model.parameters() if weight.ndim > 1]
    vectors = [weight for weight in model.parameters() if weight.ndim <= 1]
    groups = [
        {"params": matrices, "weight_decay": recipe.weight_decay},
        {"params": vectors, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=recipe.peak_rate, betas=(0.9, 0.98))


def fit(model: OPTForCausalLM, stream: torch.Tensor, recipe: Recipe) -> Iterator[float]:
    """Train the model in place, yielding the mean loss of each step in nats per token."""
    generator = torch.Generator().manual_seed(recipe.seed)
    optimizer = build_optimizer(model, recipe)
    model.train()
    for step in range(recipe.steps):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step, recipe)
        loss = next_token_losses(model, draw_batch(stream, recipe, generator)).mean()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), recipe.clip)
        optimizer.step()
        yield loss.item()
    model.eval()


def next_token_losses(model: OPTForCausalLM, ids: torch.Tensor) -> torch.Tensor:
    """Return the loss of each token after the first, in nats, for ids of shape (batch, length)."""
    logits = model(input_ids=ids, use_cache=False).logits[:, :-1]
    return F.cross_entropy(logits.transpose(1, 2), ids[:, 1:], reduction="none")


@torch.inference_mode()
def bytes_loss(model: OPTForCausalLM, documents: Sequence[bytes], window: int) -> float:
    """Return the mean loss over all bytes of the documents, in nats per byte.

    Each document is cut into pieces of ``window - 1`` bytes, each read after a BOS token alone.
    """
    total = 0.0
    for document in documents:
        for start in range(0, len(document), window - 1):
            piece = document[start : start + window - 1]
            ids = torch.tensor([[BOS_ID, *(FIRST_BYTE_ID + byte for byte in piece)]])
            total += next_token_losses(model, ids).sum().item()
    return total / sum(map(len, documents))


def train_one(
    name: str, corpus: Corpus, recipe: Recipe, directory: Path, report: Callable[[str], object]
) -> dict[str, float | int]:
    """Train the model ``name``, write its checkpoint to ``directory`` and return its figures.

    ``report`` takes a line of progress now and then. The losses are in nats per byte, but for the
    training loss, which is the mean of the last tenth of the steps and counts the EOS tokens too.
    """
    model = build_model(name, recipe)
    losses: list[float] = []
    for loss in fit(model, token_stream(corpus.train), recipe):
        losses.append(loss)
        if len(losses) % PROGRESS_EVERY == 0:
            recent = sum(losses[-PROGRESS_EVERY:]) / PROGRESS_EVERY
            report(f"{name}: step {len(losses)} of {recipe.steps}, training loss {recent:.3f}\n")
    last = losses[-max(1, len(losses) // 10) :]
    write_checkpoint(model, build_tokenizer(recipe.window), directory)
    return {
        "parameters": model.num_parameters(),
        "training_loss": round(sum(last) / len(last), 4),
        "held_out_loss": round(bytes_loss(model, corpus.held_out, recipe.window), 4),
    }


def write_checkpoint(
    model: OPTForCausalLM, tokenizer: PreTrainedTokenizerFast, directory: Path
) -> None:
    """Write the model and its tokenizer to ``directory``, readable by everyone."""
    model.save_pretrained(directory)
    tokenizer.save_pretrained(directory)
    _name_known_class(directory / "tokenizer_config.json")
    for path in directory.iterdir():
        # The weights come out readable by their owner alone, which an installed package cannot use.
        path.chmod(0o644)


def _name_known_class(path: Path) -> None:
    """Name the tokenizer's class as transformers 4 does too; 5 takes both names for one."""
    settings = json.loads(path.read_text(encoding="utf-8"))
    settings["tokenizer_class"] = "PreTrainedTokenizerFast"
    path.write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")


def describe(corpus: Corpus, recipe: Recipe) -> dict[str, object]:
    """Return what the figures depend on, and the entropy to hold them against."""
    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "recipe": dataclasses.asdict(recipe),
        "held_out_topics": list(HELD_OUT_TOPICS),
        "training_bytes": sum(map(len, corpus.train)),
        "held_out_bytes": sum(map(len, corpus.held_out)),
        "unigram_entropy": round(unigram_entropy(b"".join(corpus.held_out)), 4),
    }


def render_card(figures: Mapping[str, Any]) -> str:
    """Return the model card in Markdown, filled in from the contents of ``training.json``."""
    rows = "\n".join(
        f"| `{name}` | {model['parameters']:,} | {model['training_loss']:.3f} "
        f"| **{model['held_out_loss']:.3f}** | {figures['unigram_entropy']:.3f} |"
        for name, model in figures["models"].items()
    )
    topics_list = ", ".join(f"`{topic}`" for topic in figures["held_out_topics"])
    fields = dict(figures) | figures["recipe"] | {"rows": rows, "topics": topics_list}
    return string.Template(CARD_TEMPLATE.read_text(encoding="utf-8")).substitute(fields)


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Compute on one thread, so that sums are taken in one order whatever the machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def main(arguments: Sequence[str] | None = None) -> int:
    """Train both models into a directory, write the figures and the card, and show the losses."""
    parser = argparse.ArgumentParser(prog="python -m normscope.demo.train", description=__doc__)
    parser.add_argument("output", type=Path, metavar="OUTPUT_DIR")
    parser.add_argument("--steps", type=int, default=Recipe().steps, metavar="N")
    options = parser.parse_args(arguments)
    if options.steps < 1:
        parser.error("--steps must be at least 1")
    transformers.logging.disable_progress_bar()
    recipe = Recipe(steps=options.steps)
    corpus = load_corpus()
    figures = describe(corpus, recipe)
    with one_thread():
        figures["models"] = {
            name: train_one(name, corpus, recipe, options.output / name, sys.stderr.write)
            for name in DEMO_NAMES
        }
    text = json.dumps(figures, indent=2) + "\n"
    (options.output / FIGURES_NAME).write_text(text, encoding="utf-8")
    (options.output / CARD_NAME).write_text(render_card(figures), encoding="utf-8")
    sys.stdout.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
