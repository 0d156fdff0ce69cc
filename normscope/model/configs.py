"""A composite config -> the configs inside it."""

from collections.abc import Iterator

from transformers import PretrainedConfig, PreTrainedModel


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


def part_for(chosen: type[PreTrainedModel], config: PretrainedConfig) -> PretrainedConfig:
    """Return the config inside a composite one that a class was written for, else the whole.

    A checkpoint may name the text model's class beside the config of the whole.
    """
    wanted = chosen.config_class
    if wanted is None or isinstance(config, wanted):
        return config
    return next((part for part in configs_in(config) if isinstance(part, wanted)), config)
