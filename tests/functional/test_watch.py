"""Watching a module: what is seen of its calls, and that they go on as if nobody looked."""

import contextlib
import gc
import weakref

import pytest
import torch
import transformers
from torch import nn
from torch.nn import functional

import normscope
from normscope.errors import FailureKind, NormscopeError, UsageError


def tiny_llama(**changes: object) -> transformers.LlamaForCausalLM:
    torch.manual_seed(0)
    return transformers.LlamaForCausalLM(
        transformers.LlamaConfig(
            hidden_size=16,
            num_hidden_layers=2,
            num_attention_heads=2,
            num_key_value_heads=1,
            intermediate_size=32,
            vocab_size=40,
            bos_token_id=1,
            eos_token_id=2,
            attention_dropout=0.2,
            **changes,
        )
    )


IDS = torch.tensor([[5, 6, 7, 8, 9], [9, 8, 7, 6, 5]])


class Odd(nn.Module):
    """A norm of each way to be read, random numbers, a buffer and a counter."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(8)
        self.across = nn.BatchNorm1d(8)
        self.drop = nn.Dropout(0.5)
        self.runs = 0
        self.fails: type[BaseException] | None = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.runs += 1
        written = functional.layer_norm(x, (8,))
        if self.fails is not None:
            raise self.fails
        return self.drop(self.across((written + self.norm(x)).transpose(1, 2)))


def traces_of_watching(module: nn.Module) -> list[object]:
    """Return everything that a watch could have left behind."""
    found: list[object] = [
        hook
        for child in module.modules()
        for hook in (*child._forward_hooks, *child._forward_pre_hooks)
    ]
    found += [child for child in module.modules() if child._compiled_call_impl is not None]
    mode = torch.utils._python_dispatch._get_current_dispatch_mode()
    return found if mode is None else [*found, mode]


def test_one_call_gives_what_measuring_gives() -> None:
    model = tiny_llama().eval()
    measured = normscope.measure_activations(model, {"input_ids": IDS})
    with normscope.watch(model) as watched, torch.no_grad():
        model(input_ids=IDS)
    assert watched.statistics() == measured
    assert traces_of_watching(model) == []


def trained(*, watching: bool) -> tuple[list[torch.Tensor], "normscope.activations.Watch | None"]:
    model = tiny_llama().train()
    torch.manual_seed(1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with normscope.watch(model) if watching else contextlib.nullcontext() as watched:
        for _ in range(3):
            model(input_ids=IDS, labels=IDS).loss.backward()
            optimizer.step()
            optimizer.zero_grad()
    return [parameter.detach() for parameter in model.parameters()], watched


def test_training_goes_on_as_if_nobody_looked() -> None:
    alone, _ = trained(watching=False)
    weights, watched = trained(watching=True)
    assert all(map(torch.equal, alone, weights))
    statistics = watched.statistics()
    assert (watched.calls, statistics.input.sequences, statistics.input.tokens) == (3, 6, 30)
    assert len(statistics.norms) == 5
    assert all(len(norm.before.variance) == 30 for norm in statistics.norms)


def test_what_the_model_keeps_is_as_without_the_first_extra_run() -> None:
    plain, watched_model = Odd().train(), Odd().train()
    watched_model.load_state_dict(plain.state_dict())
    inputs = [torch.randn(4, 3, 8) for _ in range(3)]
    torch.manual_seed(2)
    expected = [plain(x) for x in inputs]
    torch.manual_seed(2)
    with normscope.watch(watched_model):
        found = [watched_model(x) for x in inputs]
    assert all(map(torch.equal, expected, found))
    assert watched_model.runs == 3
    for name, buffer in plain.named_buffers():
        assert torch.equal(buffer, dict(watched_model.named_buffers())[name])
    assert watched_model.training


def test_every_kind_of_norm_is_read_in_training() -> None:
    model = Odd().train()
    x = torch.randn(4, 3, 8) * 3
    with normscope.watch(model) as watched:
        model(x)
        model(x + 1)
    norms = {norm.name: norm for norm in watched.statistics().norms}
    assert {name: norm.problem for name, norm in norms.items()} == {
        ":LayerNorm": None, "norm": None, "across": None
    }  # fmt: skip
    expected = torch.cat([x, x + 1]).double().var(-1, correction=0).flatten().tolist()
    assert norms[":LayerNorm"].before.variance == pytest.approx(expected, rel=1e-5)
    assert norms["across"].rows == "8 channels"


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_nothing_is_left_after_an_error(error: type[BaseException]) -> None:
    model = Odd().eval()
    watch = normscope.watch(model)
    with pytest.raises(error), watch:  # noqa: PT012 - the second call fails
        model(torch.randn(2, 3, 8))
        model.fails = error
        model(torch.randn(2, 3, 8))
    assert traces_of_watching(model) == []
    assert torch.backends.mha.get_fastpath_enabled()
    assert watch.statistics().input.tokens == 6


def test_caches_that_are_passed_in_are_filled_once() -> None:
    model = tiny_llama().eval()
    plain = model.generate(IDS, max_new_tokens=4, do_sample=False, pad_token_id=0)
    with normscope.watch(model) as watched:
        found = model.generate(IDS, max_new_tokens=4, do_sample=False, pad_token_id=0)
    assert torch.equal(plain, found)
    statistics = watched.statistics()
    assert all(norm.problem is None for norm in statistics.norms)
    # The prompt at once, then a token a call; the last one is not fed back.
    assert statistics.input.tokens == 2 * (5 + 3)


@pytest.mark.parametrize("reentrant", [True, False])
def test_checkpointed_blocks_are_seen_once(reentrant: bool) -> None:
    model = tiny_llama().train()
    model.activation_checkpointing_enable({"use_reentrant": reentrant})
    with normscope.watch(model) as watched:
        model(input_ids=IDS, labels=IDS, use_cache=False).loss.backward()
    statistics = watched.statistics()
    assert {(norm.problem, len(norm.before.mean)) for norm in statistics.norms} == {(None, 10)}


def test_watches_nest_and_may_end_in_any_order() -> None:
    model = Odd().eval()
    x = torch.randn(2, 3, 8)
    first, second = normscope.watch(model), normscope.watch(model)
    with contextlib.ExitStack() as stack:
        first.__enter__()
        model(x)
        stack.enter_context(second)
        model(x)
        first.__exit__(None, None, None)
        model(x)
    model(x)
    assert (first.calls, second.calls) == (2, 2)
    assert traces_of_watching(model) == []
    assert torch.backends.mha.get_fastpath_enabled()


def test_a_norm_by_itself_can_be_watched() -> None:
    norm = nn.LayerNorm(8)
    x = torch.randn(2, 3, 8) * 5
    with normscope.watch(norm) as watched:
        norm(x)
    (found,) = watched.statistics().norms
    expected = x.double().var(-1, correction=0).flatten().tolist()
    assert found.before.variance == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("whole", [True, False], ids=["torch.compile", "module.compile"])
def test_compiled_code_runs_uncompiled_and_is_compiled_afterwards(whole: bool) -> None:
    model = Odd().eval()
    compiled = torch.compile(model, backend="eager") if whole else model
    if not whole:
        model.compile(backend="eager")
    x = torch.randn(2, 3, 8)
    compiled(x)
    before = model._compiled_call_impl
    with normscope.watch(compiled) as watched:
        compiled(x)
    assert watched.calls == 1
    assert all(norm.problem is None for norm in watched.statistics().norms)
    assert model._compiled_call_impl is before


def test_without_a_call_there_is_nothing_to_report() -> None:
    model = Odd()
    with normscope.watch(model) as watched:
        model.forward(torch.randn(2, 3, 8))
    with pytest.raises(UsageError, match="not called") as caught:
        watched.statistics()
    assert "model.forward" in caught.value.hint


def test_what_cannot_be_copied_is_run_all_the_same_and_reported() -> None:
    class Stream(nn.Module):
        def forward(self, rows: object) -> torch.Tensor:
            return functional.layer_norm(torch.stack(list(rows)), (8,))

    model = Stream()
    rows = torch.randn(3, 8)
    with normscope.watch(model) as watched:
        found = model(row for row in rows)
    assert torch.equal(found, functional.layer_norm(rows, (8,)))
    with pytest.raises(NormscopeError, match="cannot be copied"):
        watched.statistics()


def test_calls_that_were_missed_are_told() -> None:
    class Either(nn.Module):
        def forward(self, x: object) -> torch.Tensor:
            rows = x if isinstance(x, torch.Tensor) else torch.stack(list(x))
            return functional.layer_norm(rows, (8,))

    model = Either()
    rows = torch.randn(3, 8)
    with normscope.watch(model) as watched:
        model(rows)
        model(row for row in rows)
    (warning,) = watched.statistics().warnings
    assert warning.startswith("1 call was not measured: what the model is called with cannot be")


def test_copies_on_several_devices_are_refused() -> None:
    parallel = nn.DataParallel(Odd())
    parallel.device_ids = [0, 1]
    with pytest.raises(NormscopeError, match="DataParallel") as caught:
        normscope.watch(parallel)
    assert caught.value.kind is FailureKind.TRACE_FAILED


def test_nothing_of_the_activations_is_kept() -> None:
    model = nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8))
    seen: list[weakref.ref[torch.Tensor]] = []
    model[1].register_forward_pre_hook(lambda _module, args: seen.append(weakref.ref(args[0])))
    with normscope.watch(model) as watched:
        model(torch.randn(2, 3, 8))
        gc.collect()
        assert len(seen) > 1  # of the call, and of those before it that found the norm
        assert all(reference() is None for reference in seen)
    assert watched.calls == 1


def test_inputs_that_are_written_in_place_are_written_once() -> None:
    class Doubling(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return functional.layer_norm(x.mul_(2), (8,))

    model = Doubling()
    x = torch.ones(1, 3, 8)
    with normscope.watch(model):
        model(x)
    assert torch.equal(x, torch.full((1, 3, 8), 2.0))
