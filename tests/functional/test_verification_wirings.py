"""Wirings that must not deceive the numbers: side streams, zeros, branches without tokens."""

import torch
from torch import nn

from normscope import inspect_module
from normscope.checkpoint import resolve_checkpoint
from normscope.inspection import Inspection
from normscope.model import BuiltModel
from normscope.pipeline import placed_root
from normscope.verification import Verification
from normscope.verification.verify import verify_inspection

WIDTH = 16


def mlp() -> nn.Sequential:
    return nn.Sequential(nn.Linear(WIDTH, 32), nn.GELU(), nn.Linear(32, WIDTH))


def verified(model: nn.Module, *shape: int) -> tuple[Inspection, Verification]:
    return checked(model, ((torch.randn(*shape, WIDTH),), {}))


def checked(
    model: nn.Module, inputs: tuple[tuple[torch.Tensor, ...], dict[str, torch.Tensor]]
) -> tuple[Inspection, Verification]:
    report = inspect_module(model.eval(), inputs[0] or inputs[1])
    built = BuiltModel(
        target="py:made:model",
        module=model,
        config=None,
        class_name=type(model).__name__,
        model_type=None,
        dtype="float32",
        parameters=1,
        inputs=inputs,
    )
    return report, verify_inspection(report, resolve_checkpoint(built.target), built, placed_root)


def told(found: Verification) -> list[tuple[str, str, str]]:
    return [(one.block, one.reported.value, one.observed.value) for one in found.branches]


class Pair(nn.Module):
    """Two streams through one block; what becomes of the second one is thrown away in the end."""

    def __init__(self) -> None:
        super().__init__()
        self.n, self.p, self.f, self.g = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH), mlp(), mlp()

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x = x + self.f(self.n(x) + self.p(y).mean(1, keepdim=True))
        return x, y + self.g(self.p(y))


class Pairs(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.i, self.j = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)
        self.b, self.o = nn.ModuleList(Pair() for _ in range(3)), nn.LayerNorm(WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x, y = self.i(x), self.j(x)
        for block in self.b:
            x, y = block(x, y)
        return self.o(x)


def test_a_sum_of_another_stream_does_not_go_on_from_the_last_sum() -> None:
    _, found = verified(Pairs(), 2, 6)
    assert {tuple(names) for _, *names in told(found)} == {("pre-norm", "pre-norm")}
    assert len(found.branches) == 6


class Asking(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.n = nn.LayerNorm(WIDTH)

    def forward(self, x: torch.Tensor, y: torch.Tensor, place: torch.Tensor) -> torch.Tensor:
        scores = self.q(x + place) @ self.k(y).transpose(-1, -2)
        return self.n(x + self.o(scores.softmax(-1) @ self.v(y)))


class Queries(nn.Module):
    """A decoder that begins with zeros, or with queries that are stored for one sequence."""

    def __init__(self, *, zeros: bool) -> None:
        super().__init__()
        self.zeros = zeros
        self.i, self.w = nn.Linear(WIDTH, WIDTH), nn.Parameter(torch.randn(1, 5, WIDTH))
        self.s, self.b = nn.LayerNorm(WIDTH), nn.ModuleList(Asking() for _ in range(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y, query = self.i(x), self.s(self.w)
        if self.zeros:
            query = (self.w + y[:, :1]) * 0
        for block in self.b:
            query = block(query, y, self.w)
        return query


def test_a_block_that_reads_zeros_tells_nothing_and_the_others_do() -> None:
    _, found = verified(Queries(zeros=True), 2, 6)
    assert told(found) == [(f"b.{index}", "post-norm", "post-norm") for index in (1, 2)]
    (item,) = found.branches_not_checked
    assert (item.what.split(",")[0], item.reason) == ("b.0", "what enters it is zero in the copy")


def test_stored_queries_are_the_skip_of_what_is_computed_for_each_sequence() -> None:
    report, found = verified(Queries(zeros=False), 2, 6)
    assert [part.formula for b in report.blocks for part in b.branches] == ["N(x + f(x))"] * 3
    assert told(found) == [(f"b.{index}", "post-norm", "post-norm") for index in range(3)]


class Chosen(nn.Module):
    """A second branch for tokens of a kind that there are none of."""

    def __init__(self) -> None:
        super().__init__()
        self.n, self.f, self.p, self.g = nn.LayerNorm(WIDTH), mlp(), nn.LayerNorm(WIDTH), mlp()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.f(self.n(x))
        few = x[:, :, 0] > 1e9
        own = x[few]
        return x.masked_scatter(few.unsqueeze(-1), own + self.g(self.p(own)))


def test_a_branch_that_nothing_goes_through_is_not_checked() -> None:
    parts = (nn.Linear(WIDTH, WIDTH), Chosen(), Chosen(), Chosen(), nn.LayerNorm(WIDTH))
    _, found = verified(nn.Sequential(*parts), 2, 6)
    assert told(found) == [(str(index), "pre-norm", "pre-norm") for index in (1, 2, 3)]
    assert {item.reason for item in found.branches_not_checked} == {
        "nothing of the copy's inputs goes through it"
    }
    assert len(found.branches_not_checked) == 3


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.n, self.m = nn.LayerNorm(WIDTH), mlp()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.m(self.n(x))


class Marked(nn.Module):
    """Counts tokens that its own table has no row for, as a default config may have it."""

    def __init__(self) -> None:
        super().__init__()
        self.e = nn.Embedding(32, WIDTH)
        self.b, self.o = nn.ModuleList(Block() for _ in range(2)), nn.LayerNorm(WIDTH)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        if int((tokens == 40).sum()) != 2:
            raise ValueError("tokens and images do not match")
        x = self.e(tokens)
        for block in self.b:
            x = block(x)
        return self.o(x)


def test_a_token_past_the_table_stays_what_it_is() -> None:
    with torch.device("meta"):
        model = Marked()
    inputs = {"tokens": torch.tensor([[1, 40, 3, 40, 5]])}
    _, found = checked(model, ((), inputs))
    assert told(found) == [(f"b.{index}", "pre-norm", "pre-norm") for index in range(2)]
    assert found.branches_not_checked == ()


class Reversible(nn.Module):
    """Two streams, each of which reads the other."""

    def __init__(self) -> None:
        super().__init__()
        self.n, self.f, self.p, self.g = nn.LayerNorm(WIDTH), mlp(), nn.LayerNorm(WIDTH), mlp()

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x = x + self.f(self.n(y))
        return x, y + self.g(self.p(x))


class Joined(nn.Module):
    """The final norm reads both streams side by side: no norm is on the trunk of either."""

    def __init__(self) -> None:
        super().__init__()
        self.i, self.o = nn.Linear(WIDTH, WIDTH), nn.LayerNorm(2 * WIDTH)
        self.b = nn.ModuleList(Reversible() for _ in range(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = y = self.i(x)
        for block in self.b:
            x, y = block(x, y)
        return self.o(torch.cat([x, y], dim=-1))


def test_an_output_that_passes_the_next_sum_by_shows_how_large_a_sum_is() -> None:
    _, found = verified(Joined(), 2, 6)
    assert {tuple(names) for _, *names in told(found)} == {("pre-norm", "pre-norm")}
    assert len(found.branches) == 6


class Refined(nn.Module):
    """Each block says where the next one has to look, which it adds to its queries."""

    def __init__(self) -> None:
        super().__init__()
        self.i, self.w = nn.Linear(WIDTH, WIDTH), nn.Parameter(torch.randn(1, 5, WIDTH))
        self.o, self.r = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WIDTH)
        self.b = nn.ModuleList(Asking() for _ in range(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y, query, place = self.i(x), self.w, self.w
        for block in self.b:
            query = block(query, y, place)
            place = self.r(self.o(query)).sigmoid()
        return self.o(query)


def test_what_only_prepares_an_addition_to_the_inputs_is_no_input() -> None:
    _, found = verified(Refined(), 2, 6)
    assert told(found) == [(f"b.{index}", "post-norm", "post-norm") for index in range(3)]
    assert found.branches[1].consequences[0].observed.startswith("0 of 1 inputs")


class Ending(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.m, self.n = mlp(), nn.LayerNorm(WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.n(x + self.m(x))


class Scored(nn.Module):
    """Two blocks that are in no list, and so in no stack."""

    def __init__(self) -> None:
        super().__init__()
        self.i, self.a, self.b = nn.Linear(WIDTH, WIDTH), Block(), Ending()
        self.h = nn.Linear(WIDTH, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scores: torch.Tensor = self.h(self.b(self.a(self.i(x))).mean(1))
        return scores


def test_a_block_of_no_list_does_not_go_by_others() -> None:
    _, found = verified(Scored(), 2, 6)
    assert told(found) == [("a", "pre-norm", "pre-norm"), ("b", "post-norm", "post-norm")]


class Beside(nn.Module):
    """x + g(n(x + f(m(x)))): the sum inside is normalized, and no stream goes on from it."""

    def __init__(self) -> None:
        super().__init__()
        self.m, self.n, self.f, self.g = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH), mlp(), mlp()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.g(self.n(x + self.f(self.m(x))))


def test_a_sum_that_only_the_branch_around_it_reads_is_not_checked() -> None:
    _, found = verified(nn.Sequential(Beside(), Beside(), Beside()), 2, 6)
    assert {tuple(names) for _, *names in told(found)} == {("pre-norm", "pre-norm")}
    assert {one.reason for one in found.branches_not_checked} == {
        "its sum is only what the branch around it reads"
    }
