"""Places of norms and blocks that a program of mutation testing found no other test of."""

import pytest
import torch
from torch import nn

from normscope import inspect_module
from normscope.inspection import Inspection
from specimens.written import WIDTH, Written, report_of, stacked


def linears(names: str) -> dict[str, nn.Module]:
    return {name: nn.Linear(WIDTH, WIDTH) for name in names}


def placements(report: Inspection) -> dict[str, list[str]]:
    return {block.path: [b.placement.value for b in block.branches] for block in report.blocks}


class Pre(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.n, self.a, self.b = nn.LayerNorm(WIDTH), nn.Linear(16, 16), nn.Linear(16, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.b(torch.relu(self.a(self.n(x))))


class Branch(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.n, self.a, self.b = nn.LayerNorm(WIDTH), nn.Linear(16, 16), nn.Linear(16, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.b(torch.relu(self.a(self.n(x))))


def run(blocks: nn.Module, x: torch.Tensor) -> torch.Tensor:
    for block in blocks:
        x = block(x)
    return x


def test_blocks_that_are_lists_of_branches_themselves() -> None:
    def forward(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
        for first, second in model.z:
            x = x + first(x)
            x = x + second(x)
        return x

    pairs = nn.ModuleList(nn.ModuleList([Branch(), Branch()]) for _ in range(3))
    report = report_of(forward, z=pairs)
    assert placements(report) == {f"z.{index}": ["pre-norm"] * 2 for index in range(3)}


def roles(report: Inspection) -> dict[str, str]:
    return {norm.name: norm.role.value for norm in report.norms if "z" not in norm.name.split(".")}


def test_norms_before_and_behind_a_stack() -> None:
    def forward(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
        x = run(model.z, model.start(model.a(x)))
        x = model.end(x)
        pooled = model.pooled(model.b(x).mean(1))
        return model.head(torch.relu(model.c(x))).sum(1) + pooled

    norms = {name: nn.LayerNorm(WIDTH) for name in ("start", "end", "pooled", "head")}
    blocks = nn.ModuleList(Pre() for _ in range(2))
    report = report_of(forward, z=blocks, **norms, **linears("abc"))
    assert roles(report) == {
        "start": "embedding",
        "end": "final",
        "pooled": "pooler",
        "head": "head",
    }
    (stack,) = report.stacks
    assert stack.ended_by == ("end",)


def test_a_norm_of_what_the_stack_gives_pooled_ends_it() -> None:
    def forward(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
        return model.a(model.end(run(model.z, x).mean(1)))

    blocks = nn.ModuleList(Pre() for _ in range(2))
    report = report_of(forward, z=blocks, end=nn.LayerNorm(WIDTH), **linears("a"))
    assert roles(report) == {"end": "final"}
    assert [stack.ended_by for stack in report.stacks] == [("end",)]


def test_a_norm_between_two_stacks_and_one_of_nothing() -> None:
    def forward(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
        aside = model.aside(model.c(x))
        x = model.between(torch.relu(model.a(run(model.z, x))))
        return torch.cat((run(model.y, torch.relu(model.b(x))), aside), dim=-1)

    norms = {name: nn.LayerNorm(WIDTH) for name in ("between", "aside")}
    lists = {name: nn.ModuleList(Pre() for _ in range(2)) for name in "zy"}
    found = roles(report_of(forward, **lists, **norms, **linears("abc")))
    assert (found["between"], found["aside"]) == ("between_stacks", "unplaced")


def test_a_product_of_two_halves_of_one_norms_output_is_no_norm_at_the_end() -> None:
    def forward(m: nn.Module, x: torch.Tensor) -> torch.Tensor:
        first, second = m.n(m.b(torch.relu(m.a(x)))).chunk(2, dim=-1)
        return x + first * second

    report = stacked(
        forward,
        lambda: {"a": nn.Linear(16, 16), "b": nn.Linear(16, 32), "n": nn.LayerNorm(32)},
    )
    assert placements(report) == {"0": ["no-norm"], "1": ["no-norm"]}


def test_two_convolutions_that_are_added_one_after_the_other_are_one_branch() -> None:
    def forward(m: nn.Module, x: torch.Tensor) -> torch.Tensor:
        return x + m.n(m.c(x)) + m.p(m.d(x))

    def parts() -> dict[str, nn.Module]:
        norms = {name: nn.BatchNorm1d(6) for name in "np"}
        return {**norms, **{name: nn.Conv1d(6, 6, 3, padding=1) for name in "cd"}}

    assert placements(stacked(forward, parts)) == {"0": ["res-post-norm"], "1": ["res-post-norm"]}


def test_a_sum_that_is_also_returned_has_no_norm_on_its_trunk() -> None:
    def bare(m: nn.Module, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        x = x + m.b(torch.relu(m.a(x)))
        return m.n(x), x

    def trunk(m: nn.Module, x: torch.Tensor) -> torch.Tensor:
        return bare(m, x)[0]

    parts = {"n": nn.LayerNorm(WIDTH), **linears("ab")}
    assert placements(report_of(bare, **parts)) == {"": ["no-norm"]}
    assert placements(report_of(trunk, **parts)) == {"": ["post-norm"]}


def test_two_norms_behind_one_sum_are_both_on_the_trunk() -> None:
    def forward(m: nn.Module, x: torch.Tensor) -> torch.Tensor:
        return m.p(m.n(x + m.b(torch.relu(m.a(x)))))

    norms = ("n", "p")
    report = stacked(forward, lambda: {**{n: nn.LayerNorm(16) for n in norms}, **linears("ab")})
    assert placements(report) == {"0": ["post-norm"], "1": ["post-norm"]}
    found = {norm.name: norm.role.value for norm in report.norms}
    assert (found["1.n"], found["1.p"]) == ("trunk", "trunk")


def test_a_norm_that_opens_the_second_stack_stands_between_the_two() -> None:
    def forward(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
        return run(model.y, model.between(torch.relu(model.a(run(model.z, x)))))

    lists = {name: nn.ModuleList(Pre() for _ in range(2)) for name in "zy"}
    report = report_of(forward, **lists, between=nn.LayerNorm(WIDTH), **linears("a"))
    assert {norm.role.value for norm in report.norms if norm.name == "between"} == {
        "between_stacks"
    }


def test_a_norm_behind_the_positions_that_a_convolution_adds_opens_the_stack() -> None:
    def forward(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
        x = x + torch.relu(model.c(x.transpose(1, 2)).transpose(1, 2))
        return run(model.z, model.start(x))

    def behind_a_product(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
        x = x + torch.relu(model.c(x.transpose(1, 2)).transpose(1, 2))
        return run(model.z, model.start(model.a(x)))

    for written in (forward, behind_a_product):
        parts = {"c": nn.Conv1d(16, 16, 3, padding=1), "start": nn.LayerNorm(16), **linears("a")}
        report = report_of(written, z=nn.ModuleList(Pre() for _ in range(2)), **parts)
        found = {norm.role.value for norm in report.norms if norm.name == "start"}
        assert found == {"stack_input"}, written


def test_a_block_that_runs_three_times_is_one_block_of_three_calls() -> None:
    def forward(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
        for _ in range(3):
            x = run(model.z, x)
        return x

    report = report_of(forward, z=nn.ModuleList(Pre() for _ in range(2)))
    assert {block.path: block.calls for block in report.blocks} == {"z.0": 3, "z.1": 3}
    assert [
        (norm.name, norm.call, norm.calls) for norm in report.norms if norm.name == "z.0.n"
    ] == [("z.0.n", call, 3) for call in range(3)]


def test_a_skip_with_a_number_added_is_the_stream() -> None:
    def forward(m: nn.Module, x: torch.Tensor) -> torch.Tensor:
        x = m.c(x)
        return (x + 1.0) + m.b(torch.relu(m.a(m.n(x))))

    report = report_of(forward, n=nn.LayerNorm(WIDTH), **linears("abc"))
    assert placements(report) == {"": ["pre-norm"]}


def test_a_stream_may_begin_as_the_input_times_a_parameter() -> None:
    def forward(m: nn.Module, x: torch.Tensor) -> torch.Tensor:
        x = x * m.w[0]
        return x + m.b(torch.relu(m.a(m.n(x))))

    report = report_of(forward, n=nn.LayerNorm(WIDTH), **linears("ab"))
    assert placements(report) == {"": ["pre-norm"]}


def test_norms_behind_a_product_and_a_convolution_are_those_of_embedding_and_head() -> None:
    def forward(m: nn.Module, x: torch.Tensor) -> torch.Tensor:
        x = run(m.z, m.a(m.start(x)))
        return m.head(m.c(x.transpose(1, 2)).transpose(1, 2))

    norms = {name: nn.LayerNorm(WIDTH) for name in ("start", "head")}
    blocks = nn.ModuleList(Pre() for _ in range(2))
    report = report_of(forward, z=blocks, c=nn.Conv1d(16, 16, 1), **norms, **linears("a"))
    assert roles(report) == {"start": "embedding", "head": "head"}


def test_a_product_that_adds_the_stream_itself_is_a_branch() -> None:
    def forward(m: nn.Module, x: torch.Tensor) -> torch.Tensor:
        return torch.addmm(x, torch.relu(m.a(m.n(x))), m.b.weight)

    report = report_of(forward, torch.rand(6, WIDTH), n=nn.LayerNorm(WIDTH), **linears("ab"))
    assert placements(report) == {"": ["pre-norm"]}


def test_the_square_of_a_value_is_no_skip() -> None:
    def forward(m: nn.Module, x: torch.Tensor) -> torch.Tensor:
        x = m.c(x)
        return x * x + m.b(torch.relu(m.a(m.n(x))))

    assert report_of(forward, n=nn.LayerNorm(WIDTH), **linears("abc")).blocks == ()


@pytest.mark.parametrize("axes", [(1,), (0, 1)])
def test_what_is_computed_once_for_all_tokens_is_no_branch(axes: tuple[int, ...]) -> None:
    def forward(m: nn.Module, x: torch.Tensor) -> torch.Tensor:
        return x + m.b(torch.relu(m.a(x.mean(axes, keepdim=axes == (1,)))))

    assert stacked(forward, lambda: linears("ab")).blocks == ()


REASONS = {
    "the skip passes a norm that the branch does not": lambda m, x: m.n(x) + m.b(m.a(x).relu()),
    "only some of the branch's inputs are normalized": lambda m, x: (
        x + m.b(m.a(m.n(x)).relu() * m.c(x))
    ),
    "the branch ends in a sum of normalized values": lambda m, x: (
        x + (m.n(m.a(x)) + m.p(m.b(x.relu())))
    ),
    "an activation stands between the branch's norm and the add": lambda m, x: (
        x + m.n(m.b(m.a(x).relu())).relu()
    ),
}


@pytest.mark.parametrize("reason", REASONS)
def test_a_wiring_without_a_name_is_told_with_its_reason(reason: str) -> None:
    report = stacked(
        REASONS[reason], lambda: {**linears("abc"), "n": nn.LayerNorm(16), "p": nn.LayerNorm(16)}
    )
    found = [(b.placement.value, b.reason) for block in report.blocks for b in block.branches]
    assert found == [("other", reason)] * 2


def test_one_model_of_one_block_without_a_list() -> None:
    report = inspect_module(Written(lambda m, x: m.p(x), p=Pre()), torch.randn(2, 6, WIDTH))
    assert placements(report) == {"p": ["pre-norm"]}
    assert report.stacks == ()
