"""The byte-level tokenizer of the demo models: one token for each byte, and three special ones."""

from __future__ import annotations

from typing import Final

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

PAD, BOS, EOS = "<pad>", "<s>", "</s>"
PAD_ID, BOS_ID, EOS_ID = 0, 1, 2
FIRST_BYTE_ID: Final = 3
"""The id of byte 0; byte ``b`` has the id ``FIRST_BYTE_ID + b``."""
VOCABULARY: Final = FIRST_BYTE_ID + 256


def build_tokenizer(window: int) -> PreTrainedTokenizerFast:
    """Return the tokenizer: a BOS token, then one token for each byte of the UTF-8 text.

    ``window`` is the longest sequence the model takes, in tokens, the BOS token included.
    """
    specials = {PAD: PAD_ID, BOS: BOS_ID, EOS: EOS_ID}
    byte_tokens = {char: FIRST_BYTE_ID + byte for byte, char in enumerate(_byte_characters())}
    backend = Tokenizer(models.BPE(vocab=specials | byte_tokens, merges=[]))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(
        add_prefix_space=False, trim_offsets=False, use_regex=False
    )
    backend.decoder = decoders.ByteLevel()
    backend.add_special_tokens([AddedToken(text, normalized=False) for text in specials])
    backend.post_processor = processors.TemplateProcessing(
        single=f"{BOS} $A", pair=f"{BOS} $A {BOS} $B", special_tokens=[(BOS, BOS_ID)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        bos_token=BOS,
        eos_token=EOS,
        pad_token=PAD,
        padding_side="right",
        model_max_length=window,
        # The default of transformers 5; 4 adds token types, which OPT does not take.
        model_input_names=["input_ids", "attention_mask"],
        clean_up_tokenization_spaces=False,
        # Text that spells a special token is text: it must come back byte for byte.
        split_special_tokens=True,
    )


def _byte_characters() -> list[str]:
    # The alphabet of ByteLevel: printable Latin-1 bytes stand for themselves, the others for the
    # characters from U+0100 on, in order.
    printable = {*range(33, 127), *range(161, 173), *range(174, 256)}
    stand_ins = iter(range(256, 512))
    return [chr(byte if byte in printable else next(stand_ins)) for byte in range(256)]
