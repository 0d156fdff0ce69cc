"""A live module or a target + inputs -> Statistics: how Python asks."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from os import PathLike, fspath
from typing import Any

import torch
from torch import nn

from normscope.activations.batches import Budget, batches_of
from normscope.activations.checkpoint import MeasureOptions, measure_checkpoint
from normscope.activations.measure import Planner, measure_batches
from normscope.activations.offload import planner_for
from normscope.activations.plan import plan_measurement
from normscope.activations.streams import Inputs, as_inputs
from normscope.activations.subject import Subject, device_of, subject_of, unwrapped, usable_device
from normscope.activations.texts import encode_texts, labeller
from normscope.activations.tokens import Labeller
from normscope.checkpoint import resolve_checkpoint
from normscope.errors import UsageError
from normscope.limits import within
from normscope.model import load_model
from normscope.statistics import DEFAULT_THRESHOLDS, Statistics, Thresholds


def measure_activations(
    model: nn.Module | str | PathLike[str],
    inputs: Any,
    *,
    tokenizer: Any = None,
    mask: torch.Tensor | None = None,
    label: Labeller | None = None,
    exclude_special: bool = False,
    norms: str | None = None,
    verify: bool = False,
    thresholds: Thresholds = DEFAULT_THRESHOLDS,
    options: MeasureOptions | None = None,
) -> Statistics:
    """Measure what each norm of a model gets and gives, token by token.

    `model` is a live module, or a target as the command line takes it. `inputs` is a mapping of
    keyword arguments, a tuple of positional ones, or one tensor; or a text or several, which need
    `tokenizer` where the module is live. `mask` is [batch, sequence], true where a token counts;
    without it the `attention_mask` among the inputs. The tokenizer, or else `label`, gives tokens
    their texts and tells the special ones. `norms` is a pattern of names (`*.ln_1`). With
    `verify` each norm's output is recomputed in float64 from its input. `thresholds` say from where
    on something is a finding, `options` how a target is loaded.

    The module runs in eval mode without gradients, once to find its norms and once to measure; its
    mode and hooks are as before afterwards. Raises `NormscopeError` where the target cannot be
    loaded or the forward fails, `UsageError` where `norms` matches nothing or the inputs do not
    suit.
    """
    if isinstance(model, nn.Module):
        module = unwrapped(model)
        subject = subject_of(module)
        planned: Planner = plan_measurement
    else:
        target, options = fspath(model), options or MeasureOptions()
        texts = _texts(inputs)
        if texts:
            asked = replace(
                options,
                texts=texts,
                exclude_special=exclude_special,
                norms=norms,
                verify=verify,
                thresholds=thresholds,
            )
            return measure_checkpoint(target, asked)
        module, subject, planned = _loaded(target, options)
    return measure_batches(
        module,
        _batches(module, inputs, tokenizer, mask),
        subject=subject,
        label=label or labeller(tokenizer, getattr(module, "config", None)),
        exclude_special=exclude_special,
        norms=norms,
        planned=planned,
        verify=verify,
        thresholds=thresholds,
    )


def _texts(inputs: Any) -> tuple[str, ...]:
    """Return the texts that were given, none where it is something else."""
    if isinstance(inputs, str):
        return (inputs,)
    if isinstance(inputs, Sequence) and inputs and all(isinstance(item, str) for item in inputs):
        return tuple(inputs)
    return ()


def _loaded(target: str, options: MeasureOptions) -> tuple[nn.Module, Subject, Planner]:
    checkpoint = resolve_checkpoint(
        target, revision=options.revision, offline=options.offline, limits=options.limits
    )
    with within(target, options.limits):
        loaded = load_model(
            checkpoint,
            dtype=options.dtype,
            device=usable_device(options.device),
            trust_remote_code=options.trust_remote_code,
            offload=options.offload,
            attention=options.attention,
            limits=options.limits,
            tell=options.tell,
        )
    module = unwrapped(loaded.module)
    return module, replace(subject_of(module), target=target), planner_for(loaded)


def _batches(
    module: nn.Module, inputs: Any, tokenizer: Any, mask: torch.Tensor | None
) -> Iterable[Inputs]:
    texts = _texts(inputs)
    if not texts:
        return [as_inputs(inputs, mask)]
    if tokenizer is None:
        raise UsageError(
            "a live module has no tokenizer to read a text with",
            "give tokenizer=..., or tensors: tokenizer(text, return_tensors='pt')",
        )
    sequences = encode_texts(tokenizer, texts)
    config = getattr(module, "config", None)
    return batches_of(module, config, sequences, budget=Budget.usual(), device=device_of(module))
