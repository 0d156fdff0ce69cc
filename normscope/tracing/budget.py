"""How many operations a forward pass may still run."""

from normscope.limits import Limits, OverLimit


class OperationBudget:
    """Counts down from the limit of one pass; without limits it never ends."""

    def __init__(self, limits: Limits | None) -> None:
        self._most = 0 if limits is None else limits.operations
        self._left = self._most
        self._ends = limits is not None

    def take_one(self) -> None:
        """Count an operation; raises `OverLimit` where none is left."""
        self._left -= 1
        if self._ends and self._left < 0:
            raise OverLimit(
                f"one forward pass takes more than {self._most:,} operations",
                "let it have more: --max-operations N",
            )
