"""What the views must never hide, and what they must never claim."""

from dataclasses import replace

import pytest

from golden.inspections import bert, deepseek, llama, opt_without_final_norm, swin, t5
from normscope.inspection import Inspection, NormReport, Placement, Role
from normscope.render.norms import render_norms
from normscope.render.page import PLAIN
from normscope.render.table import render_table


def shown(inspection: Inspection) -> str:
    return render_table(inspection, PLAIN)


def with_norms(inspection: Inspection, norms: list[NormReport]) -> Inspection:
    return replace(inspection, norms=tuple(norms))


def changed(inspection: Inspection, name: str, /, **changes: object) -> Inspection:
    return with_norms(
        inspection,
        [replace(n, **changes) if n.name == name else n for n in inspection.norms],  # type: ignore[arg-type]
    )


def test_blocks_that_read_the_same_are_told_once() -> None:
    assert "32 blocks, all alike" in shown(llama())
    assert shown(llama()).count("input_layernorm") == 1


@pytest.mark.parametrize(
    "oddity",
    [
        {"eps": 1e-5},
        {"kind": "LayerNorm"},
        {"gain": "1+w"},
        {"bias": True},
        {"axes": (1,)},
        {"groups": 2},
        {"eps_position": "outside"},
    ],
)
def test_a_block_with_one_odd_norm_is_not_hidden(oddity: dict[str, object]) -> None:
    odd = shown(changed(llama(), "layers.5.input_layernorm", **oddity))
    assert "32 blocks in 2 variants" in odd
    assert "\n    0-4, 6-31\n" in odd
    assert "\n    5\n" in odd


def test_a_block_with_another_placement_is_not_hidden() -> None:
    made = llama()
    attention, mlp = made.blocks[7].branches
    odd = replace(made.blocks[7], branches=(replace(attention, placement=Placement.OTHER), mlp))
    blocks = (*made.blocks[:7], odd, *made.blocks[8:])
    assert "0-6, 8-31" in shown(replace(made, blocks=blocks))


def test_a_size_that_changes_with_depth_makes_no_variant() -> None:
    assert "12 blocks, all alike" in shown(swin())
    assert "LayerNorm(96, 192, 384 or 768)" in shown(swin())


def test_a_missing_final_norm_is_said_only_where_it_is_missing() -> None:
    sentence = "no final norm: nothing normalizes the stream after decoder.layers"
    assert sentence in shown(opt_without_final_norm())
    for complete in (llama(), t5(), swin(), deepseek()):
        assert "no final norm" not in shown(complete)


def test_a_post_norm_stack_needs_no_final_norm() -> None:
    assert "no final norm" not in shown(bert())


def ended(inspection: Inspection, path: str, *norms: str) -> Inspection:
    """Give the stream behind one stack to these norms."""
    stacks = [replace(s, ended_by=norms) if s.path == path else s for s in inspection.stacks]
    return replace(inspection, stacks=tuple(stacks))


def test_a_decoder_without_its_final_norm_is_named() -> None:
    told = shown(ended(ended(t5(), "encoder.block", "encoder.final_layer_norm"), "decoder.block"))
    assert "no final norm: nothing normalizes the stream after decoder.block" in told
    assert "after encoder.block" not in told


def test_a_norm_ends_a_stack_by_what_it_reads_and_not_by_where_it_stands() -> None:
    beside = ended(llama(), "layers")  # its `norm`, said to be final, reads something else
    assert "no final norm: nothing normalizes the stream after layers" in shown(beside)
    elsewhere = ended(changed(llama(), "norm", name="head.norm"), "layers", "head.norm")
    assert "no final norm" not in shown(elsewhere)


@pytest.mark.parametrize(("last", "said"), [(Placement.PRE, True), (Placement.POST, False)])
def test_the_last_block_decides_whether_a_final_norm_is_missed(last: Placement, said: bool) -> None:
    made = ended(llama(), "layers")
    placements = [Placement.POST] * 31 + [last]
    blocks = [
        replace(b, branches=tuple(replace(part, placement=placement) for part in b.branches))
        for b, placement in zip(made.blocks, placements, strict=True)
    ]
    assert ("no final norm" in shown(replace(made, blocks=tuple(blocks)))) is said


def test_uneven_eps_is_said_in_words() -> None:
    told = shown(changed(llama(), "layers.5.input_layernorm", eps=1e-5))
    assert (
        "the input norms do not share one eps: 1e-06 in 63 calls, "
        "1e-05 in layers.5.input_layernorm" in told
    )
    assert "do not share" not in shown(llama())


def test_norms_that_never_ran_are_listed_together() -> None:
    made = llama(depth=2)
    idle = [
        replace(made.norms[0], name=f"spare.{n}.norm", calls=0, role=Role.UNPLACED)
        for n in range(3)
    ]
    told = shown(with_norms(made, [*made.norms, *idle]))
    assert "built and never run: spare.0-2.norm" in told
    assert "5 calls of RMSNorm" in told


def test_nothing_found_is_said() -> None:
    empty = replace(llama(), stacks=(), blocks=(), norms=(), placement=Placement.UNKNOWN)
    assert "no residual block was found" in shown(empty)
    assert "no norm was found" in shown(empty)


def test_towers_are_named() -> None:
    told = shown(replace(llama(), towers=("vision_model", "text_model")))
    assert "traced alone: vision_model and text_model" in told


def test_assumptions_are_counted_and_listed_on_demand() -> None:
    assert "1 assumption and 1 warning; --verbose lists them" in shown(deepseek())
    listed = render_table(deepseek(), PLAIN, verbose=True)
    assert "assumed at layers.3.mlp.experts: nonzero is every element" in listed
    assert "warning: the quantization of the checkpoint is not applied" in listed


def test_a_revision_stands_behind_the_target_once() -> None:
    made = llama()
    pinned = replace(made, model=replace(made.model, revision="abc123"))
    assert "type:llama@abc123  " in shown(pinned)
    assert "@abc123@" not in shown(replace(pinned, target="org/llama@abc123"))


def test_folds_name_every_reader_or_the_reason() -> None:
    table = render_norms(llama(), PLAIN)
    assert "into q_proj, k_proj, v_proj" in table
    assert "no: trunk" in render_norms(bert(), PLAIN)


def test_readers_with_one_last_name_keep_their_path() -> None:
    readers = ("layers.0.a.dense", "layers.0.b.dense")
    made = changed(llama(depth=1), "layers.0.input_layernorm", readers=readers)
    assert "into a.dense, b.dense" in render_norms(made, PLAIN)
