"""Statistics against a float64 reference that plain hooks compute, model by model."""

import copy
from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
import transformers
from torch import nn
from torch.nn import functional

from normscope.activations import measure_activations
from normscope.statistics import Moments, NormStatistics, Statistics

TOLERANCE = 1e-5
IDS = torch.tensor([[5, 17, 3, 88, 42, 9, 61], [7, 2, 54, 31, 0, 0, 0]])
MASK = torch.tensor([[1, 1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 0, 0, 0]])
SIZES = {
    "vocab_size": 100,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
}
NO_TOKENS = {"bos_token_id": None, "eos_token_id": None, "pad_token_id": None}


@dataclass
class Reference:
    """The tensors that went into and came out of one module, call by call, in float64."""

    into: list[torch.Tensor]
    out_of: list[torch.Tensor]


def watch(module: nn.Module, name: str) -> Reference:
    seen = Reference([], [])

    def hook(_module: nn.Module, args: tuple[torch.Tensor, ...], output: torch.Tensor) -> None:
        seen.into.append(args[0].detach().double().clone())
        seen.out_of.append(output.detach().double().clone())

    module.get_submodule(name).register_forward_hook(hook)
    return seen


def reference_run(
    model: nn.Module, names: list[str], inputs: dict[str, torch.Tensor]
) -> dict[str, Reference]:
    """Run a copy, so that the model under test carries no hook of the test's own."""
    twin = copy.deepcopy(model).eval()
    seen = {name: watch(twin, name) for name in names}
    with torch.no_grad():
        twin(**inputs)
    return seen


def close(found: tuple[float, ...], expected: torch.Tensor) -> bool:
    return torch.allclose(
        torch.tensor(found, dtype=torch.float64), expected, rtol=TOLERANCE, atol=1e-12
    )


def assert_rows(found: Moments | None, rows: torch.Tensor) -> None:
    """`rows` is [tokens, features] in float64."""
    assert found is not None
    assert len(found.variance) == len(rows)
    assert close(found.variance, rows.var(-1, correction=0))
    assert torch.allclose(
        torch.tensor(found.mean, dtype=torch.float64), rows.mean(-1), rtol=1e-5, atol=1e-6
    )
    assert torch.tensor(found.peak, dtype=torch.float64).equal(rows.abs().amax(-1))
    assert torch.tensor(found.peak_channel).equal(rows.abs().argmax(-1))


def named(statistics: Statistics, name: str, call: int = 0) -> NormStatistics:
    return next(norm for norm in statistics.norms if (norm.name, norm.call) == (name, call))


def randomized(model: nn.Module, seed: int = 0) -> nn.Module:
    """Gains and biases that are not ones and zeros, so that before and after differ."""
    torch.manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.add_(torch.randn_like(parameter) * 0.3)
    return model


def gpt2() -> nn.Module:
    config = transformers.GPT2Config(vocab_size=100, n_embd=32, n_layer=2, n_head=4, **NO_TOKENS)
    return transformers.GPT2Model(config)


def bert() -> nn.Module:
    return transformers.BertModel(transformers.BertConfig(**SIZES))


def llama() -> nn.Module:
    return transformers.LlamaModel(
        transformers.LlamaConfig(**SIZES, **NO_TOKENS, num_key_value_heads=2)
    )


CAUSAL_NORMS = {
    gpt2: ["h.0.ln_1", "h.0.ln_2", "h.1.ln_1", "h.1.ln_2", "ln_f"],
    bert: [
        "embeddings.LayerNorm",
        *(
            f"encoder.layer.{layer}.{part}output.LayerNorm"
            for layer in range(2)
            for part in ("attention.", "")
        ),
    ],
    llama: [
        *(
            f"layers.{layer}.{part}_layernorm"
            for layer in range(2)
            for part in ("input", "post_attention")
        ),
        "norm",
    ],
}


@pytest.mark.parametrize("build", list(CAUSAL_NORMS), ids=lambda build: build.__name__)
def test_each_norm_agrees_with_plain_hooks_and_padding_is_left_out(
    build: Callable[[], nn.Module],
) -> None:
    model = randomized(build())
    inputs = {"input_ids": IDS, "attention_mask": MASK}
    statistics = measure_activations(model, inputs)
    names = CAUSAL_NORMS[build]
    expected = reference_run(model, names, inputs)
    assert [norm.name for norm in statistics.norms] == names
    for name in names:
        found = named(statistics, name)
        assert found.rows_per_token == 1
        assert_rows(found.before, expected[name].into[0][MASK.bool()])
        assert_rows(found.after, expected[name].out_of[0][MASK.bool()])
    assert [token.id for token in statistics.tokens] == [5, 17, 3, 88, 42, 9, 61, 7, 2, 54, 31]
    assert statistics.input.padding == 3


def qwen3(heads: int = 4) -> nn.Module:
    sizes = {**SIZES, "num_attention_heads": heads}
    config = transformers.Qwen3Config(**sizes, **NO_TOKENS, num_key_value_heads=2, head_dim=8)
    return randomized(transformers.Qwen3Model(config))


# With four tokens there are as many heads as tokens, and sizes alone do not tell them apart.
@pytest.mark.parametrize("heads", [4, 14])
@pytest.mark.parametrize("length", [7, 4, 1])
def test_norms_of_queries_and_keys_give_the_mean_over_their_heads(heads: int, length: int) -> None:
    model = qwen3(heads)
    inputs = {"input_ids": IDS[:1, :length]}
    statistics = measure_activations(model, inputs)
    names = ["layers.1.self_attn.q_norm", "layers.1.self_attn.k_norm"]
    expected = reference_run(model, names, inputs)
    for name, rows in zip(names, (heads, 2), strict=True):
        found = named(statistics, name)
        assert found.rows_per_token == rows
        into = expected[name].into[0]  # [batch, sequence, heads, features]
        assert into.shape[1:3] == (length, rows)
        assert found.before is not None
        assert found.every_before is not None
        assert close(found.before.variance, into.var(-1, correction=0).mean(-1)[0])
        assert close(found.before.peak, into.abs().amax(-1).amax(-1)[0])
        assert close(found.every_before.variance, into.var(-1, correction=0).flatten())


class HeadsFirst(nn.Module):
    """Normalizes queries as [batch, heads, sequence, features]."""

    def __init__(self, heads: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(100, heads * 6)
        self.heads = heads
        self.norm = nn.LayerNorm(6)
        self.out = nn.Linear(heads * 6, 5)

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        x = self.embed(input_ids)
        x = x.unflatten(-1, (self.heads, 6)).transpose(1, 2)
        return self.out(self.norm(x).transpose(1, 2).flatten(-2))


@pytest.mark.parametrize(("batch", "heads", "length"), [(1, 4, 4), (2, 2, 2), (2, 5, 5), (1, 3, 7)])
def test_heads_before_the_sequence_are_told_from_heads_behind_it(
    batch: int, heads: int, length: int
) -> None:
    torch.manual_seed(batch)
    model = HeadsFirst(heads)
    ids = torch.randint(0, 100, (batch, length))
    found = named(measure_activations(model, {"input_ids": ids}), "norm")
    into = reference_run(model, ["norm"], {"input_ids": ids})["norm"].into[0]
    assert found.rows_per_token == heads
    assert found.before is not None
    assert close(found.before.variance, into.var(-1, correction=0).mean(1).flatten())


def test_both_sides_of_an_encoder_decoder_have_tokens_of_their_own() -> None:
    config = transformers.T5Config(
        vocab_size=100, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4
    )
    model = randomized(transformers.T5Model(config))
    decoder_mask = torch.tensor([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]])
    inputs = {
        "input_ids": IDS,
        "attention_mask": MASK,
        "decoder_input_ids": IDS[:, :5] + 1,
        "decoder_attention_mask": decoder_mask,
    }
    statistics = measure_activations(model, inputs)
    names = ["encoder.block.1.layer.0.layer_norm", "decoder.block.1.layer.1.layer_norm"]
    expected = reference_run(model, names, inputs)
    for name, stream, mask in zip(names, ("encoder", "decoder"), (MASK, decoder_mask), strict=True):
        found = named(statistics, name)
        assert found.stream == stream
        assert_rows(found.before, expected[name].into[0][mask.bool()])
        assert len(statistics.tokens_of(found)) == int(mask.sum())
    decoder_ids = [token.id for token in statistics.tokens if token.stream == "decoder"]
    assert decoder_ids == (IDS[:, :5] + 1)[decoder_mask.bool()].tolist()


def test_the_same_tensor_on_both_sides_does_not_mix_them_up() -> None:
    config = transformers.BartConfig(
        vocab_size=100, d_model=32, max_position_embeddings=30, encoder_layers=1, decoder_layers=1,
        encoder_attention_heads=4, decoder_attention_heads=4,
        encoder_ffn_dim=64, decoder_ffn_dim=64,
    )  # fmt: skip
    model = randomized(transformers.BartModel(config))
    statistics = measure_activations(model, {"input_ids": IDS, "decoder_input_ids": IDS})
    assert {
        norm.name.partition(".")[0] for norm in statistics.norms if norm.stream == "encoder"
    } == {"encoder"}
    assert len(statistics.tokens) == 2 * IDS.numel()


def test_a_module_that_turns_its_axes_around_is_read_before_it_turns_them_back() -> None:
    config = transformers.SqueezeBertConfig(
        **{**SIZES, "hidden_size": 8, "num_attention_heads": 2, "intermediate_size": 16},
        embedding_size=8, q_groups=2, k_groups=2, v_groups=2,
        intermediate_groups=2, output_groups=2,
    )  # fmt: skip
    model = randomized(transformers.SqueezeBertModel(config))
    # Eight tokens of eight features: the turned shape tells nothing.
    ids = torch.arange(8).unsqueeze(0)
    name = "encoder.layers.1.output.layernorm"
    statistics = measure_activations(model, {"input_ids": ids})
    with torch.no_grad():
        output = model.eval()(ids).last_hidden_state[0].double()
    assert_rows(named(statistics, name).after, output)


def test_groups_that_the_norm_joins_are_rows() -> None:
    config = transformers.Mamba2Config(
        vocab_size=100, hidden_size=32, num_hidden_layers=1, state_size=4, num_heads=8, head_dim=8,
        n_groups=2, chunk_size=4, **NO_TOKENS,
    )  # fmt: skip
    model = randomized(transformers.Mamba2Model(config))
    found = named(measure_activations(model, {"input_ids": IDS}), "layers.0.mixer.norm")
    expected = reference_run(model, ["layers.0.mixer.norm"], {"input_ids": IDS})
    after = expected["layers.0.mixer.norm"].out_of[0].unflatten(-1, (2, 32))
    assert found.rows_per_token == 2
    assert found.after is not None
    assert close(found.after.variance, after.var(-1, correction=0).mean(-1).flatten())


class Handmade(nn.Module):
    """One functional norm in the root, one written out in a child that has children itself."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(100, 24)
        self.gain = nn.Parameter(torch.rand(24) + 0.5)
        self.inner = WrittenOut()
        self.values: dict[str, torch.Tensor] = {}

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.embed(ids) * 3 + 1
        for _ in range(2):
            n = functional.layer_norm(x, (24,), self.gain)
            self.values.setdefault("functional before", x)
            self.values.setdefault("functional after", n)
            x = x + self.inner(n, x)
        return x


class WrittenOut(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Linear(24, 24), nn.GELU())
        self.last = nn.Linear(24, 24)
        self.gain = nn.Parameter(torch.rand(24) + 0.5)
        self.values: dict[str, torch.Tensor] = {}

    def forward(self, x: torch.Tensor, skip: torch.Tensor) -> torch.Tensor:
        x = skip + self.first(x)
        scale = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
        n = x * scale * self.gain
        self.values.setdefault("written before", x)
        self.values.setdefault("written after", n)
        return self.last(n)


def test_functional_and_written_out_norms_are_read_inside_their_owner() -> None:
    torch.manual_seed(4)
    model = Handmade()
    statistics = measure_activations(model, IDS)
    kinds = [(norm.kind, norm.call) for norm in statistics.norms]
    assert sorted(kinds) == sorted(
        [("LayerNorm", 0), ("LayerNorm", 0), ("RMSNorm", 0), ("RMSNorm", 1)]
    )
    model.values.clear()
    model.inner.values.clear()
    with torch.no_grad():
        model.eval()(IDS)
    values = {**model.values, **model.inner.values}
    functional_norm = next(norm for norm in statistics.norms if norm.kind == "LayerNorm")
    written = next(norm for norm in statistics.norms if norm.kind == "RMSNorm" and norm.call == 0)
    for word, norm in (("functional", functional_norm), ("written", written)):
        assert_rows(norm.before, values[f"{word} before"].double().flatten(0, 1))
        assert_rows(norm.after, values[f"{word} after"].double().flatten(0, 1))


def test_a_shared_module_gives_one_row_a_call() -> None:
    config = transformers.AlbertConfig(**{**SIZES, "num_hidden_layers": 5}, embedding_size=16)
    model = randomized(transformers.AlbertModel(config))
    inputs = {"input_ids": IDS, "attention_mask": MASK}
    statistics = measure_activations(model, inputs)
    name = "encoder.albert_layer_groups.0.albert_layers.0.full_layer_layer_norm"
    expected = reference_run(model, [name], inputs)[name]
    calls = [norm for norm in statistics.norms if norm.name == name]
    assert [norm.call for norm in calls] == [0, 1, 2, 3, 4]
    for norm, into in zip(calls, expected.into, strict=True):
        assert_rows(norm.before, into[MASK.bool()])


@pytest.mark.parametrize("build", [gpt2, bert, llama], ids=lambda build: build.__name__)
def test_a_text_alone_and_in_a_padded_batch_gives_the_same_numbers(
    build: Callable[[], nn.Module],
) -> None:
    model = randomized(build())
    alone = measure_activations(model, {"input_ids": IDS[1:, :4]})
    batched = measure_activations(model, {"input_ids": IDS, "attention_mask": MASK})
    for one, many in zip(alone.norms, batched.norms, strict=True):
        assert one.before is not None
        assert many.before is not None
        own = torch.tensor(many.before.variance[-4:], dtype=torch.float64)
        assert close(one.before.variance, own)


def test_padding_on_the_left_is_left_out_as_well() -> None:
    model = randomized(bert())
    ids, mask = IDS.flip(1), MASK.flip(1)
    inputs = {"input_ids": ids, "attention_mask": mask}
    statistics = measure_activations(model, inputs)
    name = "encoder.layer.1.output.LayerNorm"
    into = reference_run(model, [name], inputs)[name].into[0]
    assert_rows(named(statistics, name).before, into[mask.bool()])
    assert [token.position for token in statistics.tokens if token.sequence == 1] == [0, 1, 2, 3]


def test_a_bfloat16_run_is_upcast_before_it_is_reduced() -> None:
    model = randomized(llama()).bfloat16()
    inputs = {"input_ids": IDS, "attention_mask": MASK}
    statistics = measure_activations(model, inputs)
    name = "layers.1.post_attention_layernorm"
    into = reference_run(model, [name], inputs)[name].into[0][MASK.bool()]
    assert statistics.dtype == "bfloat16"
    assert_rows(named(statistics, name).before, into)
    in_half = into.bfloat16().var(-1, correction=0).double()
    assert not close(tuple(in_half.tolist()), into.var(-1, correction=0))


def test_the_rows_of_a_batch_norm_are_its_channels() -> None:
    config = transformers.ResNetConfig(embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1])
    model = randomized(transformers.ResNetModel(config))
    inputs = {"pixel_values": torch.randn(2, 3, 32, 32)}
    statistics = measure_activations(model, inputs)
    name = "encoder.stages.1.layers.0.shortcut.normalization"
    into = reference_run(model, [name], inputs)[name].into[0]
    found = named(statistics, name)
    assert found.rows_per_token is None
    assert found.rows == "16 channels"
    assert found.before is not None
    assert close(found.before.variance, into.transpose(0, 1).flatten(1).var(-1, correction=0))
    assert found.before.peak_channel == tuple(range(16))
    assert statistics.tokens == ()
    assert statistics.input.sequences == 2


class Grouped(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 12, 3)
        self.norm = nn.GroupNorm(4, 12)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(self.conv(x))


def test_the_rows_of_a_group_norm_are_its_groups() -> None:
    model = randomized(Grouped())
    images = torch.randn(2, 3, 9, 9)
    found = named(measure_activations(model, images), "norm")
    with torch.no_grad():
        groups = model.conv(images).double().unflatten(1, (4, 3)).flatten(2)
    assert found.rows == "2 x 4 groups"
    assert found.before is not None
    assert close(found.before.variance, groups.var(-1, correction=0).flatten())
    channel = groups.abs().argmax(-1) // 49 + 3 * torch.arange(4)
    assert found.before.peak_channel == tuple(channel.flatten().tolist())


def test_the_rows_of_an_instance_norm_are_the_channels_of_each_sample() -> None:
    images = torch.randn(2, 6, 5, 5) * 3
    (found,) = measure_activations(nn.Sequential(nn.InstanceNorm2d(6)), images).norms
    assert found.rows == "2 x 6 channels"
    assert found.before is not None
    assert close(found.before.variance, images.double().flatten(2).var(-1, correction=0).flatten())
    assert found.before.peak_channel == (0, 1, 2, 3, 4, 5) * 2


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("build", [bert, llama], ids=lambda build: build.__name__)
def test_a_text_alone_equals_itself_in_a_padded_batch_of_eight(
    build: Callable[[], nn.Module], side: str
) -> None:
    """Every norm, every token and quantity, to 1e-5; `mask` in place of the model's own as well."""
    model = randomized(build())
    lengths = [3, 11, 1, 7, 11, 5, 2, 9]
    torch.manual_seed(8)
    texts = [torch.randint(1, 100, (length,)) for length in lengths]
    ids, mask = torch.zeros(8, 11, dtype=torch.long), torch.zeros(8, 11, dtype=torch.long)
    for row, text in enumerate(texts):
        place = slice(0, len(text)) if side == "right" else slice(11 - len(text), 11)
        ids[row, place], mask[row, place] = text, 1
    inputs = {"input_ids": ids, "attention_mask": mask, "position_ids": (mask.cumsum(1) - 1) * mask}
    batched = measure_activations(model, inputs)
    for own_mask in (None, mask.bool()):
        again = measure_activations(model, inputs, mask=own_mask)
        assert again.norms == batched.norms
    begin = 0
    for text in texts:
        alone = measure_activations(model, {"input_ids": text[None]})
        for one, many in zip(alone.norms, batched.norms, strict=True):
            assert_same_entries(one, many, slice(begin, begin + len(text)))
        begin += len(text)


def assert_same_entries(one: NormStatistics, many: NormStatistics, place: slice) -> None:
    for first, second in ((one.before, many.before), (one.after, many.after)):
        assert first is not None
        assert second is not None
        size = max(first.peak)
        assert first.variance == pytest.approx(second.variance[place], rel=2e-5)
        assert first.mean == pytest.approx(second.mean[place], rel=1e-5, abs=1e-6 * size)
        assert first.peak == pytest.approx(second.peak[place], rel=1e-5)


def test_a_mask_of_ones_and_none_are_the_same() -> None:
    model = randomized(gpt2())
    plain = measure_activations(model, {"input_ids": IDS})
    masked = measure_activations(model, {"input_ids": IDS, "attention_mask": torch.ones_like(IDS)})
    assert len(plain.tokens) == len(masked.tokens) == IDS.numel()


@pytest.mark.parametrize("norm_first", [False, True])
def test_the_fused_path_of_an_encoder_layer_hides_nothing(norm_first: bool) -> None:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, norm_first=norm_first).eval()
    x = torch.randn(2, 7, 32)
    statistics = measure_activations(layer, x)
    with torch.no_grad():
        attended = layer.self_attn(layer.norm1(x), layer.norm1(x), layer.norm1(x))[0]
        if not norm_first:
            attended = layer.self_attn(x, x, x)[0]
    first, second = x, x + attended
    if not norm_first:
        first, second = x + attended, None
    assert [norm.problem for norm in statistics.norms] == [None, None]
    assert_close_rows(named(statistics, "norm1"), first)
    if second is not None:
        assert_close_rows(named(statistics, "norm2"), second)


def assert_close_rows(norm: NormStatistics, value: torch.Tensor) -> None:
    """The value was computed along another path: close, not equal."""
    assert norm.before is not None
    expected = value.double().flatten(0, 1).var(-1, correction=0)
    assert torch.allclose(torch.tensor(norm.before.variance).double(), expected, rtol=1e-4)
