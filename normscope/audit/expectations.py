"""What a policy expects of a target."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """Facts that a target must have; None where a policy says nothing."""

    placement: str | None = None
    norm: str | None = None
    """Kind of the norms around the branches and of the final one: `LayerNorm`. It is these norms
    that `eps`, `gain`, `bias` and `statistics_dtype` are about."""
    eps: float | None = None
    gain: str | None = None
    """`w`, `1+w` or `none`."""
    bias: bool | None = None
    final_norm: bool | None = None
    embedding_norm: bool | None = None
    qk_norm: bool | None = None
    """Whether the attention branches normalize queries and keys: a norm inside them that no
    linear layer reads."""
    parallel: bool | None = None
    statistics_dtype: str | None = None
    norms: int | None = None
    """Count of norm calls, of a stack those in its blocks."""
    stacks: Mapping[str, "Expectation"] = field(default_factory=dict)
    """Path of a stack -> what is expected of that one instead."""

    def over(self, other: "Expectation") -> "Expectation":
        """Return what this one says, and the other where it says nothing."""
        merged = {
            item.name: getattr(self, item.name)
            if getattr(self, item.name) is not None
            else getattr(other, item.name)
            for item in fields(self)
        }
        merged["stacks"] = {
            **other.stacks,
            **{path: own.over(other.stacks.get(path, own)) for path, own in self.stacks.items()},
        }
        return Expectation(**merged)

    def of_stack(self, path: str) -> "Expectation":
        """Return what is expected of one stack."""
        return self.stacks[path].over(self) if path in self.stacks else self
