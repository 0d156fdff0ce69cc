"""Small checkpoints that tests save, with a tokenizer of ten words."""

from pathlib import Path

import tokenizers
import torch
import transformers

WORDS = ["[PAD]", "[CLS]", "[SEP]", "[UNK]", "the", "norm", "keeps", "variance", "in", "bounds"]


def save_bert(folder: Path, *, seed: int = 0, layers: int = 2) -> str:
    """Save a BERT of 12 positions, and return where."""
    config = transformers.BertConfig(
        vocab_size=10,
        hidden_size=16,
        num_hidden_layers=layers,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=12,
    )
    torch.manual_seed(seed)
    transformers.BertModel(config).save_pretrained(folder)
    save_tokenizer(folder)
    return str(folder)


def save_tokenizer(folder: Path) -> None:
    words = tokenizers.models.WordLevel({word: i for i, word in enumerate(WORDS)}, "[UNK]")
    tokenizer = tokenizers.Tokenizer(words)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
    )
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="[PAD]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        unk_token="[UNK]",
    ).save_pretrained(folder)
