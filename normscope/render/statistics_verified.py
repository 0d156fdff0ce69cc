"""Recomputed outputs -> the sentences that say how close the real ones are."""

from normscope.render.figures import counted
from normscope.render.visible import visible
from normscope.statistics import NormStatistics, Statistics


def verified_words(statistics: Statistics) -> list[str]:
    """Return one sentence a dtype, one for what could not be recomputed, then each norm's error.

    None without a check.
    """
    if not statistics.verified:
        return []
    checked = [norm for norm in statistics.norms if norm.error is not None]
    dtypes = dict.fromkeys(norm.output_dtype for norm in checked)
    sentences = [
        _sentence(str(dtype), [norm for norm in checked if norm.output_dtype == dtype])
        for dtype in dtypes
    ]
    left = [norm for norm in statistics.norms if norm.error is None and norm.problem is None]
    if left:
        names = visible(left[0].name) + (", …" if len(left) > 1 else "")
        sentences.append(f"not recomputed: {counted(len(left), 'norm call')} ({names})")
    return [*sentences, *(f"{norm.error:<8.2g}{_named(norm)}" for norm in checked)]


def _named(norm: NormStatistics) -> str:
    return visible(norm.name) + (f" #{norm.call}" if norm.call else "")


def _sentence(dtype: str, norms: list[NormStatistics]) -> str:
    worst = max(norms, key=lambda norm: norm.error or 0.0)
    return (
        f"outputs recomputed in float64: {counted(len(norms), 'norm call')} in {dtype}, "
        f"largest relative error {worst.error:.2g} ({visible(worst.name)})"
    )
