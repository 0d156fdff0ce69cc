"""Wirings that are easy to take for others: what each block of a small model is told to be."""

import torch
from torch import nn
from torch.nn import functional

from normscope import inspect_module
from normscope.inspection import Inspection

WIDTH = 16


class Attention(nn.Module):
    def __init__(self, width: int = WIDTH, out: int = WIDTH) -> None:
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(width, out) for _ in range(3))
        self.o = nn.Linear(out, out)

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        scores = self.q(q) @ self.k(k).transpose(-1, -2)
        return self.o(functional.softmax(scores, dim=-1) @ self.v(v))


def mlp(width: int = WIDTH) -> nn.Sequential:
    return nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))


def inspected(model: nn.Module, *inputs: torch.Tensor) -> Inspection:
    return inspect_module(model.eval(), inputs or (torch.randn(2, 6, WIDTH),))


def facts(report: Inspection) -> dict[str, list[tuple[str, str]]]:
    return {
        block.path: [(branch.kind.value, branch.placement.value) for branch in block.branches]
        for block in report.blocks
    }


class Remembering(nn.Module):
    """Attention plus a convolution of its own values, with the values added to that."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.qkv = nn.Linear(width, 3 * WIDTH)
        self.c = nn.Conv1d(WIDTH, WIDTH, 3, padding=1, groups=WIDTH)
        self.o = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        memory = self.c(v.transpose(1, 2)).transpose(1, 2) + v
        return self.o(functional.softmax(q @ k.transpose(-1, -2), dim=-1) @ v) + memory


class RememberingBlock(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.n, self.a = nn.LayerNorm(width), Remembering(width)
        self.p, self.m = nn.LayerNorm(WIDTH), mlp()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.a(self.n(x))
        x = x + y if x.shape == y.shape else y
        return x + self.m(self.p(x))


def test_sums_inside_an_attention_are_the_same_where_the_block_has_no_skip() -> None:
    model = nn.Sequential(RememberingBlock(WIDTH + 4), *(RememberingBlock(WIDTH) for _ in range(3)))
    report = inspected(model, torch.randn(2, 6, WIDTH + 4))
    block = [("attention", "pre-norm"), ("mlp", "pre-norm")]
    assert facts(report) == {
        "0": [("attention", "other"), ("mlp", "pre-norm")],
        **{str(index): block for index in (1, 2, 3)},
    }


class Doubled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.n, self.m = nn.LayerNorm(WIDTH), mlp()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + (x + self.m(self.n(x)))


def test_a_skip_that_is_added_twice_is_counted() -> None:
    report = inspected(nn.Sequential(Doubled(), Doubled()))
    assert [(b.placement.value, b.formula) for k in report.blocks for b in k.branches] == [
        ("pre-norm", "2·x + f(N(x))")
    ] * 2


class Beside(nn.Module):
    """What `b` computes is added to the input of `m`; the skip goes around both."""

    def __init__(self) -> None:
        super().__init__()
        self.n, self.b, self.p, self.m = nn.LayerNorm(WIDTH), mlp(), nn.LayerNorm(WIDTH), mlp()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.m(self.p(x + self.b(self.n(x))))


def test_a_sum_that_only_the_next_branch_reads_is_no_stream() -> None:
    report = inspected(nn.Sequential(Beside(), Beside()))
    block = [("mlp", "other"), ("mlp", "pre-norm")]
    assert facts(report) == {"0": block, "1": block}
    assert not [norm.name for norm in report.norms if norm.role.value == "trunk"]


class Reversible(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.n, self.a, self.p, self.m = (
            nn.LayerNorm(WIDTH),
            Attention(),
            nn.LayerNorm(WIDTH),
            mlp(),
        )

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        normed = self.n(y)
        x = x + self.a(normed, normed, normed)
        return x, y + self.m(self.p(x))


class ReversibleStack(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.z = nn.ModuleList(Reversible() for _ in range(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x
        for block in self.z:
            x, y = block(x, y)
        return torch.cat((x, y), dim=-1)


def test_two_streams_that_begin_as_one_value_both_have_their_first_block() -> None:
    block = [("attention", "pre-norm"), ("mlp", "pre-norm")]
    assert facts(inspected(ReversibleStack())) == {f"z.{index}": block for index in range(3)}


class Routed(nn.Module):
    """A mixture of two experts whose router goes on from the router before it."""

    def __init__(self) -> None:
        super().__init__()
        self.n, self.d, self.r = nn.RMSNorm(WIDTH), nn.Linear(WIDTH, 8), nn.Linear(8, 2)
        self.g = nn.Parameter(torch.rand(8))
        self.e = nn.ModuleList(mlp() for _ in range(2))

    def forward(
        self, x: torch.Tensor, state: torch.Tensor | None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        read = self.n(x)
        state = self.d(read) if state is None else self.d(read) + self.g * state
        shares = functional.softmax(self.r(state), dim=-1)
        mixed = shares[..., :1] * self.e[0](read) + shares[..., 1:] * self.e[1](read)
        return x + mixed, state


class RoutedStack(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.z = nn.ModuleList(Routed() for _ in range(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        state = None
        for block in self.z:
            x, state = block(x, state)
        return x


def test_the_state_of_a_router_is_no_stream_of_values() -> None:
    found = facts(inspected(RoutedStack()))
    assert [[name for _, name in found[f"z.{index}"]] for index in range(4)] == [["pre-norm"]] * 4


class Positioned(nn.Module):
    """Queries get a position that was computed from the normalized stream, as in a detector."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.c = Attention(), Attention()
        self.n, self.p, self.h = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.b, self.e = mlp(), mlp()

    def forward(self, x: torch.Tensor, memory: torch.Tensor) -> torch.Tensor:
        place = self.e(torch.sigmoid(self.b(self.h(x))))
        q = x + place
        x = self.n(x + self.a(q, q, x))
        return self.p(x + self.c(x + place, memory, memory))


class PositionedStack(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.z = nn.ModuleList(Positioned() for _ in range(3))
        self.i = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: torch.Tensor, memory: torch.Tensor) -> torch.Tensor:
        x = self.i(x)
        for block in self.z:
            x = block(x, memory)
        return x


def test_a_position_computed_from_the_stream_is_no_branch() -> None:
    report = inspected(PositionedStack(), torch.randn(2, 5, WIDTH), torch.randn(2, 7, WIDTH))
    block = [("attention", "post-norm"), ("cross-attention", "post-norm")]
    assert facts(report) == {f"z.{index}": block for index in range(3)}
    assert not any(branch.parallel for item in report.blocks for branch in item.branches)


class Mixer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.c = nn.Conv1d(WIDTH, WIDTH, 3, padding=1)
        self.a, self.b, self.d = (nn.BatchNorm1d(WIDTH) for _ in range(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + 0.5 * (self.a(self.c(x)) + self.b(x) - self.d(x))


def test_a_branch_that_ends_in_sums_and_differences_of_norms_has_no_plain_name() -> None:
    report = inspected(nn.Sequential(Mixer(), Mixer()), torch.randn(2, WIDTH, 6))
    assert [name for found in facts(report).values() for _, name in found] == ["other"] * 2


class Looped(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.i, self.n = nn.Linear(WIDTH, WIDTH), nn.LayerNorm(WIDTH)
        self.z = nn.ModuleList(Doubled() for _ in range(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.i(x)
        start = self.n(x)
        for _ in range(2):
            x = self.n(x) + start
            for block in self.z:
                x = block(x)
        return x


def test_a_loop_that_adds_its_start_again_is_no_sandwich() -> None:
    report = inspected(Looped())
    (around,) = [block for block in report.blocks if block.stack is None]
    assert [branch.placement.value for branch in around.branches] == ["other"]


class Skipped(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.n, self.m = nn.LayerNorm(WIDTH), mlp()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.m(self.n(x))


class Halving(nn.Module):
    """A block of another class in the list of blocks: shorter, and without a skip."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.n = Attention(), nn.LayerNorm(WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.n(self.a(x[:, ::2], x, x))


def test_a_block_of_another_kind_in_the_list_is_shown() -> None:
    found = facts(inspected(nn.Sequential(Skipped(), Skipped(), Halving(), Skipped(), Skipped())))
    assert found["2"] == [("attention", "other")]
    assert list(found) == ["0", "1", "2", "3", "4"]


def test_a_plain_convolution_between_blocks_is_no_block() -> None:
    found = facts(inspected(nn.Sequential(Skipped(), nn.Linear(WIDTH, WIDTH), Skipped())))
    assert list(found) == ["0", "2"]


class Unbatched(nn.Module):
    """The branch drops the batch axis of one, and the sum brings it back."""

    def __init__(self) -> None:
        super().__init__()
        self.n, self.m = nn.LayerNorm(WIDTH), mlp()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.m(self.n(x).squeeze(0))


def test_a_branch_without_the_batch_axis_is_added_all_the_same() -> None:
    report = inspected(nn.Sequential(Unbatched(), Unbatched()), torch.randn(1, 6, WIDTH))
    assert facts(report) == {"0": [("mlp", "pre-norm")], "1": [("mlp", "pre-norm")]}


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.n, self.r = nn.LayerNorm(WIDTH), nn.LSTM(WIDTH, WIDTH, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.r(self.n(x))[0]


class Scan(nn.Module):
    """h[t] = a[t]·h[t-1] + b[t]; with `selective`, the step sizes are a softplus of the data."""

    def __init__(self, *, selective: bool) -> None:
        super().__init__()
        self.selective = selective
        self.n, self.i, self.a, self.o = nn.LayerNorm(WIDTH), *(nn.Linear(WIDTH, WIDTH),) * 3

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.n(x)
        step = functional.softplus(self.a(y)) if self.selective else torch.sigmoid(self.a(y))
        decay, value = torch.exp(-step), self.i(y) * step
        state, states = torch.zeros_like(value[:, 0]), []
        for place in range(x.shape[1]):
            state = decay[:, place] * state + value[:, place]
            states.append(state)
        return x + self.o(torch.stack(states, dim=1))


def test_a_state_that_goes_on_over_time_tells_the_kind() -> None:
    for block, kind in (
        (Recurrent, "rnn"),
        (lambda: Scan(selective=True), "ssm"),
        (lambda: Scan(selective=False), "rnn"),
    ):
        found = facts(inspected(nn.Sequential(block(), block())))
        assert found == {"0": [(kind, "pre-norm")], "1": [(kind, "pre-norm")]}


class Repeated(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.n, self.w = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.n(x)
        return x + torch.cat([self.w(piece) for piece in y.chunk(3, dim=1)], dim=1)


def test_one_weight_on_several_pieces_is_no_recurrence() -> None:
    found = facts(inspected(nn.Sequential(Repeated(), Repeated())))
    assert found["0"] == [("mlp", "pre-norm")]
