"""A composite config -> the configs inside it."""

from collections.abc import Iterator

from transformers import PretrainedConfig


def configs_in(config: PretrainedConfig) -> Iterator[PretrainedConfig]:
    """Yield a config and the configs within it, outermost first."""
    yield config
    for value in vars(config).values():
        if isinstance(value, PretrainedConfig):
            yield from configs_in(value)


def choose_experts(config: PretrainedConfig) -> None:
    """Make each mixture of experts run without a loop over which expert got tokens."""
    for part in configs_in(config):
        if hasattr(type(part), "_experts_implementation"):
            part._experts_implementation = "batched_mm"
