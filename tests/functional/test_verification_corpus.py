"""Labelled families at their default size: the numbers of a small copy agree with every verdict.

Those of `corpus/placements.json` whose copies are quick; `benchmarks/verify_every_type.py` goes
over all types of transformers.
"""

import gc
import json
from pathlib import Path

import pytest

from normscope import InspectOptions, inspect_checkpoint
from normscope.inspection import Inspection

LABELS = json.loads(
    (Path(__file__).parent.parent / "corpus" / "placements.json").read_text(encoding="utf-8")
)
_QUICK = """
bart bert bigbird_pegasus biogpt bitnet blip bloom clip convnext cpmant ctrl data2vec-text
data2vec-vision deberta decision_transformer deit dinov2 doge dpr ernie4_5 ernie4_5_moe eurobert
falcon flava fnet focalnet gemma2 gemma3n_audio gemma4_text git glm4v_vision gpt2 gptj
hy_v4_vl_vision ibert ijepa layoutlm layoutlmv3 lightglue lilt llama lxmert minimax mistral mixtral
mobilenet_v2 mpt mt5 mvp nemotron3_diarization_audio neomme olmo2 olmo3 openai-gpt opt owlvit
paligemma pegasus perceiver phi pocket_tts pvt qwen3_5_moe_vision resnet roberta roformer
segformer sew sew-d siglip_vision_model smollm3 smolvlm_vision splinter stablelm swinv2 t5 tapas
tipsv2_text_model tipsv2_vision_model unispeech-sat video_llama_3_vision vilt vit
voxtral_realtime_encoder wav2vec2 whisper xlnet yolos
"""
QUICK = _QUICK.split()

PARTLY_SEEN = {"mobilenet_v2"}
"""Some of its blocks have no skip, and so nothing that a zeroed branch would leave."""


@pytest.mark.parametrize("model_type", QUICK)
def test_a_labelled_family_agrees_with_its_numbers(model_type: str) -> None:
    report = inspect_checkpoint(f"type:{model_type}", InspectOptions(verify=True))
    assert isinstance(report, Inspection), report
    found = report.verification
    assert found is not None
    assert [item for item in (*found.branches, *found.norms) if not item.agrees] == []
    unseen = {item.reason for item in found.branches_not_checked}
    assert unseen == ({"no skip goes around it"} if model_type in PARTLY_SEEN else set())
    assert len(found.branches) + len(found.branches_not_checked) == sum(
        len(block.branches) for block in report.blocks
    )
    modules = {norm.module for norm in report.norms if norm.module and norm.calls}
    assert {norm.module for norm in found.norms} == modules
    gc.collect()


def test_the_sample_has_labels() -> None:
    assert set(QUICK) <= set(LABELS)
    assert len(QUICK) == len(set(QUICK)) > 80
