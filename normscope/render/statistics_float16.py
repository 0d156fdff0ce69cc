"""Statistics -> in words, whether the residual stream fits float16."""

import math

from normscope.half_precision import float16_fit
from normscope.render.statistics_words import entry_labels, figure, norm_title
from normscope.render.visible import visible
from normscope.statistics import Statistics


def float16_sentence(statistics: Statistics) -> str:
    """Return the answer in words; empty where there is none."""
    fit = float16_fit(statistics)
    if fit is None:
        return ""
    largest = fit.largest
    label = entry_labels(statistics, largest.norm)[largest.entry]
    where = f"{largest.point} {norm_title(largest.norm)} at {label}, channel {largest.channel}"
    value = f"{largest.value:,.0f}" if 100 <= largest.value < 1e7 else figure(largest.value)
    if fit.first is None:
        return f"float16: the stream fits; its largest value is {value} (of 65,504) {where}"
    begin = visible(fit.first.norm.block or fit.first.norm.name)
    most = f"up to {value} (of 65,504)" if math.isfinite(largest.value) else value
    return f"float16: the stream does not fit from {begin} on; {most} {where}"
