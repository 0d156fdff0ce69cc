"""Numbers -> the ranges that they make up."""

from collections.abc import Iterable


def ranges_of(numbers: Iterable[int]) -> str:
    """Return `0, 2-11` of numbers in ascending order."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
