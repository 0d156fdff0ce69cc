"""Sizes -> images, in the layouts that models use."""

import math

import torch
from torch import nn

from normscope.inputs.facts import Scope
from normscope.inputs.request import Request
from normscope.inputs.stems import first_width

DEFAULT_SIDE = 224
LARGEST_SIDE = 1024
MOST_PATCHES = 4096
EVEN_SIDE = 448
"""A multiple of every usual patch, and of windows of them."""


def side(request: Request) -> tuple[int, int]:
    """Return height and width of an image as the config has them."""
    size = request.facts.first("image_size", "img_size", "input_size", scope=Scope.VISION)
    if isinstance(size, dict):
        size = (size.get("height", DEFAULT_SIDE), size.get("width", DEFAULT_SIDE))
    if isinstance(size, list | tuple) and size and isinstance(size[0], int):
        return int(size[0]), int(size[-1])
    return (int(size), int(size)) if isinstance(size, int) else (DEFAULT_SIDE, DEFAULT_SIDE)


def channels(request: Request) -> int:
    """Return the number of colours."""
    return request.facts.number(
        "num_channels", "in_channels", "in_chans", "channels", scope=Scope.VISION, default=3
    )


def patch(request: Request) -> int:
    """Return the side of a patch."""
    return request.facts.number("patch_size", scope=Scope.VISION, default=16)


def rows(request: Request) -> int:
    """Return how many patches stand along each side of a small image."""
    merges = ("spatial_merge_size", "merge_size", "pooling_kernel_size", "downsample_factor")
    merge = request.facts.number(*merges, scope=Scope.VISION, default=2)
    return 2 * max(merge, 2)


def patch_widths(request: Request) -> list[int]:
    """Return how many values one patch may have: by the config, and by the first weight."""
    frames = request.facts.number("temporal_patch_size", scope=Scope.VISION, default=1)
    flat = patch(request) ** 2 * channels(request)
    widths = dict.fromkeys((flat * frames, flat))
    stem = first_width(request.module, Scope.VISION, (nn.Conv2d, nn.Conv3d, nn.Linear))
    return list(dict.fromkeys([*((stem,) if stem else ()), *widths]))


def pixel_values(request: Request) -> list[torch.Tensor]:
    """Images in the layouts that models use, the likeliest first."""
    if "image_grid_thw" in request.takes or "grid_thw" in request.takes:
        return packed(request)
    first, *others = [_image(request, *size) for size in sizes(request)]
    if _PATCHED & set(request.takes.names):
        return [*_flat(request), _strip(request), *_layouts(request, first)]
    further = [layout for image in others for layout in _layouts(request, image)[:2]]
    tiles = [first[:, None].expand(-1, number, -1, -1, -1) for number in (2, 3, 5)]
    return [*_layouts(request, first), *tiles, *_flat(request), _clips(request), *further]


def sizes(request: Request) -> list[tuple[int, int]]:
    """Return heights and widths to try: the config's, a part's own, and some that divide well.

    A large image is tried after a small one: its masks are computed for real.
    """
    height, width = side(request)
    small = 7 * patch(request) * rows(request) // 2
    shorter = min(height, width)  # of an image that the model itself puts two into (SegGPT)
    usual = [(height, width), (shorter, shorter), (EVEN_SIDE, EVEN_SIDE)]
    if max(height, width) > LARGEST_SIDE:
        usual = [(small, small), *usual]
    if max(height, width) < EVEN_SIDE:
        usual.append((4 * height, 4 * width))
    return list(dict.fromkeys([*usual[:1], *_own_sizes(request), *usual[1:]]))


def _own_sizes(request: Request) -> list[tuple[int, int]]:
    """Return the image sizes that parts of the model carry themselves, as those of timm do."""
    named = (getattr(child, "img_size", None) for child in request.module.modules())
    pairs = [(size, size) if isinstance(size, int) else size for size in named]
    found = [(int(pair[0]), int(pair[1])) for pair in pairs if isinstance(pair, tuple)][:1]
    # Numbers of patches for which a projector has queries (Aria).
    counts = request.facts.first("projector_patch_to_query_dict") or {}
    sides = [math.isqrt(int(count)) * patch(request) for count in counts]
    return [*found, *((length, length) for length in sides[:1])]


def _image(request: Request, height: int, width: int) -> torch.Tensor:
    return torch.randn(request.sequences, channels(request), height, width)


def _layouts(request: Request, image: torch.Tensor) -> list[torch.Tensor]:
    """Return an image as it is, or as one of several, as a video, as tiles."""
    frames = request.facts.number("num_frames", "frames_per_clip", scope=Scope.VISION, default=0)
    tiles = request.facts.number("max_num_tiles", scope=Scope.VISION, default=0)
    one = image[:, None]
    layouts = [image, one, one[:, None]]
    if frames:
        layouts.insert(0, one.expand(-1, frames, -1, -1, -1))
    if tiles:
        layouts.insert(0, one[:, None].expand(-1, -1, tiles, -1, -1, -1))
    return layouts


def _flat(request: Request) -> list[torch.Tensor]:
    """Return patches as vectors: of a small image, and of one as large as the config says."""
    height, width = side(request)
    whole = max((height // patch(request)) * (width // patch(request)), 1)
    return [
        torch.randn(request.sequences, places, values)
        for places in dict.fromkeys((rows(request) ** 2, min(whole, MOST_PATCHES)))
        for values in patch_widths(request)
    ]


def _clips(request: Request) -> torch.Tensor:
    """Return patches as short videos, colours last."""
    size = patch(request)
    frames = request.facts.number("temporal_patch_size", scope=Scope.VISION, default=1)
    return torch.randn(4 * request.sequences, frames, size, size, channels(request))


def _strip(request: Request) -> torch.Tensor:
    """Return the patches of all images as one image that is a patch high."""
    size = patch(request)
    length = size * request.sequences * rows(request) ** 2
    return torch.randn(1, channels(request), size, length)


_PATCHED = frozenset(
    {"spatial_shapes", "pixel_position_ids", "image_position_ids", "image_grid_hw", "target_sizes"}
)
"""Names beside which images are given as flat patches."""


def grid(request: Request) -> list[torch.Tensor]:
    """Frames, rows and columns of patches in each image; [images, 3]."""
    count = rows(request)
    return [torch.tensor([[1, count, count]] * request.sequences, dtype=torch.int64)]


def packed(request: Request) -> list[torch.Tensor]:
    """The patches of all images, packed; [patches, values of a patch]."""
    count = int(grid(request)[0].prod(-1).sum())
    options = [torch.randn(count, width) for width in patch_widths(request)]
    size = patch(request)
    merged = size * request.facts.number("spatial_merge_size", scope=Scope.VISION, default=1)
    return [
        *options,
        torch.randn(count, channels(request), size, size),
        torch.randn(count, merged, merged, channels(request)),
    ]
