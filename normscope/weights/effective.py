"""One stored gain or bias -> what the norm multiplies by, or adds."""

from dataclasses import dataclass

import torch


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectiveValue:
    """A gain as the norm applies it (w, or 1 + w), or a bias."""

    exact: torch.Tensor
    """In float64."""
    summed_in: torch.dtype | None
    """The type that 1 + w was rounded to by who wrote the file; None where it holds w alone."""

    @classmethod
    def of(cls, stored: torch.Tensor, *, offset: float, added: float) -> "EffectiveValue":
        """Return it where the norm adds `offset`, and who wrote the file has put in `added`."""
        return cls(
            exact=stored.double() + (offset - added), summed_in=stored.dtype if added else None
        )

    def rounded_as(self, other: "EffectiveValue") -> torch.Tensor:
        """Return the values in float64, rounded as the sums in the other's file were."""
        if other.summed_in is None or self.summed_in is not None:
            return self.exact
        return self.exact.to(other.summed_in).double()
