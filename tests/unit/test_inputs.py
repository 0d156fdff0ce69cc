"""Signature and config -> inputs, and the search for those that run."""

import pytest
import torch
import transformers
from torch import nn

from normscope.checkpoint import resolve_checkpoint
from normscope.errors import FailureKind, NormscopeError
from normscope.graph import Graph
from normscope.inputs import example_inputs, run_traced
from normscope.inputs.facts import Facts, Scope
from normscope.model import BuiltModel, build_on_meta


def built(module, config=None):
    return BuiltModel(
        target="test",
        module=module,
        config=config,
        class_name=type(module).__name__,
        model_type=None,
        dtype="float32",
        parameters=0,
    )


def plain_trace(module, keywords, positional):
    """Run a module for real, with failures as the tracer words them."""
    try:
        module(*positional, **keywords)
    except Exception as error:
        reason = f"the forward pass failed: {type(error).__name__}: {error}"
        raise NormscopeError(FailureKind.TRACE_FAILED, reason) from error
    return Graph(nodes=(), modules={}, calls=())


class Recording(nn.Module):
    """Remembers what it was given; `accepts` says whether that is good enough."""

    def __init__(self, accepts):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1))
        self.accepts = accepts
        self.given = []

    def check(self, given):
        self.given.append(given)
        self.accepts(given)


class Reader(Recording):
    def forward(self, input_ids=None, attention_mask=None, bbox=None):
        self.check({"input_ids": input_ids, "attention_mask": attention_mask, "bbox": bbox})


def test_text_is_two_sequences_of_unequal_length():
    inputs = example_inputs(built(Reader(lambda given: None))).keywords
    assert inputs["input_ids"].shape == (2, 8)
    assert inputs["attention_mask"].sum(-1).tolist() == [8, 5]


def test_ids_stay_in_the_vocabulary_and_keep_off_special_tokens():
    config = transformers.BertConfig(vocab_size=12, pad_token_id=3, eos_token_id=5, bos_token_id=7)
    ids = example_inputs(built(Reader(lambda given: None), config)).keywords["input_ids"]
    real = ids[:, :5]
    assert real.max() < 12
    assert not set(real.flatten().tolist()) & {3, 5, 7}
    assert ids[1, 5:].tolist() == [3, 3, 3]


def test_what_a_failure_names_is_added():
    def accepts(given):
        if given["bbox"] is None:
            raise ValueError("bbox must be given")

    module = Reader(accepts)
    traced = run_traced(built(module), plain_trace)
    assert traced.roots[0].inputs.keywords["bbox"].shape == (2, 8, 4)
    assert len(module.given) == 2


def test_a_mask_that_breaks_the_forward_is_left_out():
    def accepts(given):
        if given["attention_mask"] is not None:
            raise ValueError("no padding here")

    traced = run_traced(built(Reader(accepts)), plain_trace)
    assert "attention_mask" not in traced.roots[0].inputs.keywords
    assert "input_ids" in traced.roots[0].inputs.keywords


def test_a_head_may_want_an_end_behind_each_sequence():
    def accepts(given):
        if (given["input_ids"] == 5).sum(-1).tolist() != [1, 1]:
            raise ValueError("All examples must have the same number of <eos> tokens.")

    config = transformers.BertConfig(pad_token_id=3, eos_token_id=5)
    inputs = run_traced(built(Reader(accepts), config), plain_trace).roots[0].inputs.keywords
    assert inputs["input_ids"][0, -1] == 5
    assert inputs["input_ids"][1, -4:].tolist() == [5, 3, 3, 3]


def test_a_head_may_want_answers_to_choose_from():
    def accepts(given):
        if given["input_ids"].ndim != 3 or given["attention_mask"].ndim != 3:
            raise ValueError("no choices")

    inputs = run_traced(built(Reader(accepts)), plain_trace).roots[0].inputs.keywords
    assert inputs["input_ids"].shape == inputs["attention_mask"].shape == (2, 2, 8)


def test_what_a_forward_hands_on_unnamed_is_given_on_demand():
    class Inner(nn.Module):
        def forward(self, input_ids, t_cond=None):
            if t_cond is None:
                raise ValueError("linear(): argument must be Tensor, not NoneType")
            return t_cond

    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Inner()

        def forward(self, input_ids, **further):
            return self.inner(input_ids, **further)

    config = transformers.BertConfig(hidden_size=24)
    inputs = run_traced(built(Outer(), config), plain_trace).roots[0].inputs.keywords
    assert inputs["t_cond"].shape == (1, 1, 24)


class Seer(Recording):
    def forward(self, pixel_values):
        self.check({"pixel_values": pixel_values})


def test_other_layouts_of_an_image_are_tried():
    def accepts(given):
        if given["pixel_values"].ndim != 5:
            raise ValueError("frames are missing")

    config = transformers.ViTConfig(image_size=32)
    traced = run_traced(built(Seer(accepts), config), plain_trace)
    assert traced.roots[0].inputs.keywords["pixel_values"].shape == (2, 1, 3, 32, 32)


def test_inputs_have_the_dtype_of_the_weights():
    module = Seer(lambda given: None).to(torch.bfloat16)
    config = transformers.ViTConfig(image_size=32)
    assert example_inputs(built(module, config)).keywords["pixel_values"].dtype is torch.bfloat16


def test_the_failure_that_is_reported_is_that_of_the_attempt_that_came_furthest():
    class Deep(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Identity()

        def forward(self, input_ids=None, attention_mask=None):
            if attention_mask is not None:
                raise ValueError("early")
            self.first(input_ids)
            raise ValueError("late")

    with pytest.raises(NormscopeError, match="late") as caught:
        run_traced(built(Deep()), plain_trace)
    assert caught.value.kind is FailureKind.TRACE_FAILED


def test_a_name_that_cannot_be_made_is_said():
    class Odd(nn.Module):
        def forward(self, tea_leaves):
            return tea_leaves

    with pytest.raises(NormscopeError, match="tea_leaves") as caught:
        run_traced(built(Odd()), plain_trace)
    assert caught.value.kind is FailureKind.NO_INPUTS


def test_the_inputs_of_a_factory_are_used_as_they_are():
    class Adder(nn.Module):
        def forward(self, left, right=0):
            assert (left, right) == (1, 2)

    given = BuiltModel(
        target="py:m:f",
        module=Adder(),
        config=None,
        class_name="Adder",
        model_type=None,
        dtype="float32",
        parameters=0,
        inputs=((1,), {"right": 2}),
    )
    assert run_traced(given, plain_trace).roots[0].inputs.positional == (1,)


def test_the_global_random_state_is_left_alone():
    torch.manual_seed(3)
    expected = torch.rand(1)
    torch.manual_seed(3)
    run_traced(built(Seer(lambda given: None), transformers.ViTConfig()), plain_trace)
    assert torch.equal(torch.rand(1), expected)


def test_sizes_come_from_the_part_that_is_asked_for():
    config = transformers.CLIPConfig()
    config.vision_config.patch_size = 5
    config.text_config.vocab_size = 77
    facts = Facts(config=config)
    assert facts.number("patch_size", scope=Scope.VISION, default=0) == 5
    assert facts.number("vocab_size", scope=Scope.TEXT, default=0) == 77
    assert facts.number("patch_size", scope=Scope.TEXT, default=16) == 16
    assert Facts(config=None).number("patch_size", default=4) == 4


class Tower(transformers.PreTrainedModel):
    config_class = transformers.BertConfig
    main_input_name = "pixel_values"

    def __init__(self, config):
        super().__init__(config)
        self.layer = nn.Linear(3, 3)

    def forward(self, pixel_values):
        return self.layer(pixel_values.mean((-1, -2)))


class Unmatched(nn.Module):
    """A model whose image part cannot be reached from its forward."""

    def __init__(self):
        super().__init__()
        self.vision = Tower(transformers.BertConfig())
        self.text = nn.Embedding(100, 4)

    def forward(self, input_ids=None):
        return self.text(input_ids)


def test_a_tower_that_the_whole_did_not_run_is_run_alone():
    from normscope.tracing import trace_module

    traced = run_traced(built(Unmatched()), trace_module)
    assert [root.path for root in traced.roots] == ["", "vision"]
    assert traced.towers == ("vision",)


def test_towers_answer_for_a_whole_that_cannot_run():
    from normscope.tracing import trace_module

    class Broken(Unmatched):
        def forward(self, input_ids=None):
            raise ValueError("never")

    traced = run_traced(built(Broken()), trace_module)
    assert traced.towers == ("vision",)
    assert any("never" in note for note in traced.assumed)


def test_a_tower_inside_a_model_that_ran_is_run_alone_and_counted_once():
    from normscope.tracing import trace_module

    class Headed(nn.Module):
        def __init__(self):
            super().__init__()
            self.model = Unmatched()
            self.model.vision.norm = nn.LayerNorm(3)

        def forward(self, input_ids=None):
            return self.model(input_ids)

    traced = run_traced(built(Headed()), trace_module)
    assert [root.path for root in traced.roots] == ["", "model.vision"]
    assert "model.vision.norm" not in traced.roots[0].graph.unrun
    assert "norm" in traced.roots[1].graph.unrun


@pytest.mark.parametrize("head", [[], ["LlavaForConditionalGeneration"]])
def test_a_prompt_has_a_place_for_each_feature_of_the_image(tmp_path, head):
    from normscope.tracing import trace_module

    vision = {
        "model_type": "clip_vision_model",
        "image_size": 28,
        "patch_size": 14,
        "hidden_size": 16,
        "intermediate_size": 16,
        "num_hidden_layers": 3,
        "num_attention_heads": 2,
    }
    text = {
        "model_type": "llama",
        "hidden_size": 16,
        "intermediate_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "vocab_size": 64,
    }
    config = transformers.LlavaConfig(
        vision_config=vision,
        text_config=text,
        image_token_index=63,
        image_seq_length=4,
        architectures=head,
    )
    config.save_pretrained(tmp_path)
    traced = run_traced(build_on_meta(resolve_checkpoint(str(tmp_path))), trace_module)
    (root,) = traced.roots
    ids = root.inputs.keywords["input_ids"]
    assert (ids == 63).sum(-1).tolist() == [4, 4]
    ran = root.graph.call_counts
    inside = "model." if head else ""
    towers = [path for path in ran if path.startswith(f"{inside}vision_tower.")]
    assert any(path.endswith("encoder.layers.0") for path in towers)
    assert f"{inside}language_model.layers.1" in ran
