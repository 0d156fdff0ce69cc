"""`normscope.measure_activations` on live modules of all sorts, and on targets."""

from pathlib import Path

import pytest
import torch
import transformers
from torch import nn

import normscope
from normscope.activations.checkpoint import MeasureOptions
from normscope.errors import NormscopeError, UsageError


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(8)
        self.linear = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.linear(self.norm(x))


X = torch.randn(2, 3, 8, generator=torch.Generator().manual_seed(0)) * 4
VARIANCE = X.double().var(-1, correction=0).flatten().tolist()


def variance(model: nn.Module, inputs: object = X) -> tuple[float, ...]:
    norm = normscope.measure_activations(model, inputs).norms[0]
    assert norm.problem is None
    assert norm.before is not None
    return norm.before.variance


def test_wrappers_are_unwrapped() -> None:
    in_place = Block()
    in_place.compile(backend="eager")
    in_place(X)
    wrapped = torch.compile(Block(), backend="eager")
    for model in (nn.DataParallel(Block()), wrapped, nn.DataParallel(wrapped), in_place):
        assert normscope.measure_activations(model, X).norms[0].name == "norm"
        assert variance(model) == pytest.approx(VARIANCE, rel=1e-5)


def test_a_compiled_part_is_seen() -> None:
    model = nn.Sequential(torch.compile(Block(), backend="eager"), Block())
    model(X)
    norms = normscope.measure_activations(model, X).norms
    assert [norm.problem for norm in norms] == [None, None]
    assert variance(model) == pytest.approx(VARIANCE, rel=1e-5)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_scripted_parts_are_refused_by_their_path() -> None:
    model = nn.Sequential(Block(), torch.jit.script(Block()))
    with pytest.raises(NormscopeError, match=r"^1 is TorchScript \(Block\)"):
        normscope.measure_activations(model, X)
    traced = torch.jit.trace(Block(), X)
    with pytest.raises(NormscopeError, match=r"^the module is TorchScript \(Block\)"):
        normscope.measure_activations(traced, X)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_a_traced_part_is_seen_as_operations() -> None:
    model = nn.Sequential(torch.jit.trace(Block(), X), Block())
    assert variance(model) == pytest.approx(VARIANCE, rel=1e-5)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("padded", [True, False])
def test_the_fused_encoder_of_torch_is_seen_inside(training: bool, padded: bool) -> None:
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    model = nn.TransformerEncoder(layer, 2).train(training)
    inputs = {"src": X}
    if padded:
        inputs["src_key_padding_mask"] = torch.tensor([[False] * 3, [False, False, True]])
    norms = normscope.measure_activations(model, inputs).norms
    assert [(norm.name, norm.problem) for norm in norms] == [
        (f"layers.{index}.norm{number}", None) for index in range(2) for number in (1, 2)
    ]
    assert model.training is training
    assert torch.backends.mha.get_fastpath_enabled()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_other_dtypes_are_measured_upcast(dtype: torch.dtype) -> None:
    x = X.to(dtype)
    expected = x.double().var(-1, correction=0).flatten().tolist()
    assert variance(Block().to(dtype), x) == pytest.approx(expected, rel=1e-5)


def test_inputs_with_a_history_are_left_alone() -> None:
    x = (X.clone().requires_grad_() * 1).requires_grad_()
    assert variance(Block(), x) == pytest.approx(VARIANCE, rel=1e-5)
    assert x.requires_grad
    assert x.grad_fn is not None


def test_texts_need_a_tokenizer_only_where_the_module_is_live() -> None:
    target = normscope.measure_activations("demo:pre-norm", "a text")
    from normscope.demo import demo_path

    path = str(demo_path("pre-norm"))
    model = transformers.AutoModelForCausalLM.from_pretrained(path)
    with pytest.raises(UsageError, match="tokenizer"):
        normscope.measure_activations(model, "a text")
    tokenizer = transformers.AutoTokenizer.from_pretrained(path)
    live = normscope.measure_activations(model, ["a text"], tokenizer=tokenizer)
    assert live.tokens == target.tokens
    assert live.norms == target.norms
    assert target.target == "demo:pre-norm"


def test_a_target_takes_tensors_and_options(tmp_path: Path) -> None:
    config = transformers.GPT2Config(
        n_embd=8, n_layer=1, n_head=2, vocab_size=12, n_positions=8, bos_token_id=0, eos_token_id=0
    )
    torch.manual_seed(0)
    transformers.GPT2Model(config).save_pretrained(tmp_path)
    ids = {"input_ids": torch.tensor([[3, 4, 5]])}
    options = MeasureOptions(dtype="bfloat16")
    statistics = normscope.measure_activations(tmp_path, ids, options=options)
    assert (statistics.dtype, statistics.input.tokens) == ("bfloat16", 3)
    assert statistics.target == str(tmp_path)
    assert len(statistics.norms) == 3
