"""What measuring leaves behind (nothing), and what it says of norms that it could not read."""

from dataclasses import dataclass

import pytest
import torch
from torch import nn
from torch.nn import functional

from normscope.activations import measure_activations
from normscope.errors import FailureKind, NormscopeError, UsageError


class Norm(nn.LayerNorm):
    """Takes its input by keyword and gives it back in the shape that it was told to."""

    def __init__(self, size: int, wrap: str = "tensor") -> None:
        super().__init__(size)
        self.wrap = wrap

    def forward(self, *, hidden: torch.Tensor) -> object:  # type: ignore[override]
        out = functional.layer_norm(hidden, (8,), self.weight, self.bias, self.eps)
        wrapped: dict[str, object] = {
            "tensor": out,
            "tuple": (out, None),
            "list": [out],
            "dict": {"hidden": out},
            "dataclass": Wrapped(out),
        }
        return wrapped[self.wrap]


@dataclass
class Wrapped:
    hidden: torch.Tensor


class Block(nn.Module):
    def __init__(self, wrap: str = "tensor") -> None:
        super().__init__()
        self.norm = Norm(8, wrap)
        self.idle = nn.LayerNorm(8)
        self.linear = nn.Linear(8, 8)
        self.fail = False

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = self.norm(hidden=x)
        while not isinstance(out, torch.Tensor):
            values = out.__dict__ if isinstance(out, Wrapped) else out
            out = values["hidden"] if isinstance(values, dict) else values[0]
        if self.fail:
            raise ValueError("broken on purpose")
        return x + self.linear(out)


def hooks(module: nn.Module) -> int:
    return sum(
        len(child._forward_hooks) + len(child._forward_pre_hooks) for child in module.modules()
    )


@pytest.mark.parametrize("wrap", ["tensor", "tuple", "list", "dict", "dataclass"])
def test_inputs_by_keyword_and_outputs_of_any_shape_are_read(wrap: str) -> None:
    model = Block(wrap)
    x = torch.randn(2, 3, 8) * 4
    norm = next(norm for norm in measure_activations(model, x).norms if norm.name == "norm")
    assert norm.problem is None
    assert norm.before is not None
    assert norm.after is not None
    expected = x.double().var(-1, correction=0).flatten().tolist()
    assert norm.before.variance == pytest.approx(expected, rel=1e-5)
    assert norm.after.variance == pytest.approx([1.0] * 6, rel=1e-4)


def test_a_norm_that_never_ran_is_reported() -> None:
    statistics = measure_activations(Block(), torch.randn(1, 3, 8))
    assert [(norm.name, norm.problem) for norm in statistics.norms if norm.problem] == [
        ("idle", "it was built and never ran")
    ]


class Moody(nn.Module):
    """Takes its norm on every second run only."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(8)
        self.runs = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.runs += 1
        return self.norm(x) if self.runs % 2 else x * 2


def test_a_norm_that_did_not_run_while_measured_is_reported() -> None:
    (norm,) = measure_activations(Moody(), torch.randn(1, 3, 8)).norms
    assert norm.before is None
    assert norm.problem == "it ran while the model was traced and not while it was measured"


def test_hooks_and_mode_are_as_before() -> None:
    model = Block().train()
    model.linear.eval()
    measure_activations(model, torch.randn(1, 3, 8))
    assert hooks(model) == 0
    assert model.training
    assert model.norm.training
    assert not model.linear.training
    assert all(parameter.grad is None for parameter in model.parameters())


class Late(Block):
    """Fails on the second run: the one that is measured."""

    runs = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.runs += 1
        self.fail = self.runs == 2
        return super().forward(functional.layer_norm(x, (8,)))


def test_hooks_are_gone_after_an_error() -> None:
    model = Late().train()
    with pytest.raises(NormscopeError, match="broken on purpose") as caught:
        measure_activations(model, torch.randn(1, 3, 8))
    assert caught.value.kind is FailureKind.TRACE_FAILED
    assert model.runs == 2
    assert hooks(model) == 0
    assert model.training
    # A dispatch mode that was left open would see this operation.
    assert torch.utils._python_dispatch._get_current_dispatch_mode() is None


def test_hooks_that_others_set_stay_and_are_seen() -> None:
    model = Block()
    model.norm.register_forward_pre_hook(
        lambda _module, args, kwargs: (args, {"hidden": kwargs["hidden"] * 2}), with_kwargs=True
    )
    x = torch.randn(1, 3, 8)
    norm = measure_activations(model, x).norms[0]
    assert norm.before is not None
    expected = (x * 2).double().var(-1, correction=0).flatten().tolist()
    assert norm.before.variance == pytest.approx(expected, rel=1e-5)
    assert hooks(model) == 1


def test_a_pattern_selects_norms_and_one_without_a_match_is_a_usage_error() -> None:
    model = nn.Sequential(*(nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8)) for _ in range(3)))
    x = torch.randn(1, 3, 8)
    names = [norm.name for norm in measure_activations(model, x, norms="[02].*").norms]
    assert names == ["0.1", "2.1"]
    with pytest.raises(UsageError, match=r"no norm's name matches 'h\.\*'") as caught:
        measure_activations(model, x, norms="h.*")
    assert caught.value.hint == "its norms are called 0.1, 1.1, 2.1"


def test_a_compiled_wrapper_is_unwrapped() -> None:
    model = Block()
    compiled = torch.compile(model, backend="eager")
    assert measure_activations(compiled, torch.randn(1, 3, 8)).norms[0].problem is None


def test_a_scripted_module_is_refused() -> None:
    scripted = torch.jit.ScriptModule()
    with pytest.raises(NormscopeError, match="TorchScript"):
        measure_activations(scripted, torch.randn(1, 3, 8))


class Turned(nn.Module):
    """A norm whose input is read by a hook, and whose output inside it, before it is turned."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.layer_norm(x, (8,)).transpose(1, 2)


def test_what_reading_computes_is_not_counted_among_the_operations_of_the_module() -> None:
    x = torch.randn(2, 5, 8)
    (norm,) = measure_activations(nn.Sequential(Turned(), nn.Flatten()), x).norms
    assert norm.problem is None
    assert norm.before is not None
    assert norm.after is not None
    expected = x.double().var(-1, correction=0).flatten().tolist()
    assert norm.before.variance == pytest.approx(expected, rel=1e-5)
    assert norm.after.variance == pytest.approx([1.0] * 10, rel=1e-4)


class Shifted(nn.Module):
    """A large offset: float32 sums of squares would cancel."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(768)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(x)


def test_large_offsets_do_not_cancel() -> None:
    x = 1e4 + 1e-2 * torch.randn(1, 5, 768)
    (norm,) = measure_activations(Shifted(), x).norms
    assert norm.before is not None
    exact = x.double().var(-1, correction=0).flatten().tolist()
    assert norm.before.variance == pytest.approx(exact, rel=1e-5)
    assert exact == pytest.approx([1e-4] * 5, rel=0.2)


def test_a_mask_says_which_positions_count() -> None:
    x = torch.randn(2, 3, 768)
    mask = torch.tensor([[True, True, False], [True, False, False]])
    statistics = measure_activations(Shifted(), x, mask=mask)
    before = statistics.norms[0].before
    assert before is not None
    expected = x.double().var(-1, correction=0)[mask].tolist()
    assert before.variance == pytest.approx(expected, rel=1e-5)
    places = [(token.sequence, token.position) for token in statistics.tokens]
    assert places == [(0, 0), (0, 1), (1, 0)]


def test_special_tokens_are_left_out_by_their_id() -> None:
    model = nn.Sequential(nn.Embedding(10, 8), nn.LayerNorm(8))
    ids = torch.tensor([[1, 5, 2], [1, 1, 4]])
    statistics = measure_activations(
        model, ids, label=lambda number: (f"<{number}>", number == 1), exclude_special=True
    )
    assert [token.text for token in statistics.tokens] == ["<5>", "<2>", "<4>"]
    assert statistics.input.special == 3
    before = statistics.norms[0].before
    assert before is not None
    expected = model[0](ids)[ids != 1].double().var(-1, correction=0).tolist()
    assert before.variance == pytest.approx(expected, rel=1e-5)
