"""Place of a peak within its row -> the number of its channel."""

from dataclasses import replace

import numpy as np

from normscope.activations.reduce import RowMoments
from normscope.norms import Norm, NormKind


def number_channels(norm: Norm, rows: RowMoments) -> RowMoments:
    """Return the rows with the channel of each peak in place of its position within the row.

    The row of a batch or instance norm is a channel; a group norm's row has several, with all their
    places. Elsewhere the place within the row is the channel (flattened, with several axes).
    """
    if norm.kind is NormKind.INSTANCE:
        rows = _unfolded(rows, norm.shape[0])
    return replace(rows, channel=_channels(norm, rows))


def _unfolded(rows: RowMoments, channels: int) -> RowMoments:
    """Torch runs an instance norm on [1, batch * channels, …]: return [batch, channels]."""
    if rows.mean.size % channels:
        return rows
    return replace(
        rows,
        mean=rows.mean.reshape(-1, channels),
        variance=rows.variance.reshape(-1, channels),
        peak=rows.peak.reshape(-1, channels),
        channel=rows.channel.reshape(-1, channels),
    )


def _channels(norm: Norm, rows: RowMoments) -> np.ndarray:
    if norm.kind not in {NormKind.BATCH, NormKind.INSTANCE} and not norm.groups:
        return rows.channel
    last = np.arange(rows.channel.shape[-1])
    if norm.kind in {NormKind.BATCH, NormKind.INSTANCE}:
        return np.broadcast_to(last, rows.channel.shape)
    if norm.groups and norm.kind is NormKind.GROUP and len(norm.axes) > 1:
        in_group = norm.shape[0] // norm.groups
        return np.asarray(last * in_group + rows.channel // (rows.length // in_group))
    return np.asarray(last * rows.length + rows.channel)
