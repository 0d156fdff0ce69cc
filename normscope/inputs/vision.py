"""Sizes -> images, patches and grids."""

from typing import Any

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
    count = request.sequences
    image = torch.randn(count, channels(request), *side(request))
    if max(side(request)) > LARGEST_SIDE and patch(request) > 1:
        small = 7 * patch(request) * rows(request) // 2
        full, image = image, torch.randn(count, channels(request), small, small)
    else:
        full = image
    frames = request.facts.number("num_frames", "frames_per_clip", scope=Scope.VISION, default=0)
    stacked = image[:, None]
    whole = max((side(request)[0] // patch(request)) * (side(request)[1] // patch(request)), 1)
    flat = [
        torch.randn(count, places, width)
        for places in dict.fromkeys((rows(request) ** 2, min(whole, MOST_PATCHES)))
        for width in patch_widths(request)
    ]
    options = [image, stacked, stacked[:, None]]
    if frames:
        options.insert(0, stacked.repeat(1, frames, 1, 1, 1))
    if _PATCHED & set(request.takes.names):
        size = patch(request)
        strip = torch.randn(1, channels(request), size, size * count * rows(request) ** 2)
        return [*flat, strip, *options]
    most = request.facts.number("max_num_tiles", scope=Scope.VISION, default=0)
    if most:
        options.insert(0, stacked[:, None].repeat(1, 1, most, 1, 1, 1))
    larger = image.repeat(1, 1, 4, 4) if max(side(request)) < EVEN_SIDE else image
    even = torch.randn(count, channels(request), EVEN_SIDE, EVEN_SIDE)
    tiles = [stacked.repeat(1, number, 1, 1, 1) for number in (2, 3, 5)]
    rest = [*options, *tiles, *flat, larger, even, even[:, None]]
    return rest if full is image else [*rest, full]


_PATCHED = frozenset(
    {"spatial_shapes", "pixel_position_ids", "image_position_ids", "image_grid_hw", "target_sizes"}
)
"""Names beside which images are given as flat patches."""


def videos(request: Request) -> list[torch.Tensor]:
    """Short videos; [sequences, frames, channels, height, width] or packed patches."""
    if "video_grid_thw" in request.takes:
        return packed(request)
    frames = request.facts.number("num_frames", "frames_per_clip", scope=Scope.VISION, default=2)
    frame = torch.randn(request.sequences, 1, channels(request), *side(request))
    return [frame.repeat(1, frames, 1, 1, 1)]


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


def streams(request: Request) -> list[torch.Tensor]:
    """Packed patches where there is a grid, else vectors of the model's width."""
    if "grid_thw" in request.takes or "image_grid_thw" in request.takes:
        return packed(request)
    width = request.facts.number("hidden_size", "d_model", "embed_dim", default=64)
    wave = torch.randn(request.sequences, request.facts.number("channels", default=1), 3200)
    latent = torch.randn(request.sequences, width, 8)
    deep = request.facts.number("latent_channels", "embed_dim", "hidden_size", default=width)
    maps = torch.randn(request.sequences, deep, 8, 8)
    stem = first_width(request.module, Scope.AUDIO, (nn.Linear, nn.Conv1d)) or width
    widths = dict.fromkeys((width, stem))
    return [*(torch.randn(request.sequences, 8, each) for each in widths), wave, latent, maps]


def flattened_patches(request: Request) -> list[torch.Tensor]:
    """Row, column and values of each patch; [images, patches, 2 + values of a patch]."""
    places = positions(request)[0] + 1
    return [
        torch.cat([places, torch.randn(*places.shape[:2], width)], -1)
        for width in patch_widths(request)
    ]


def image_places(request: Request) -> list[torch.Tensor]:
    """Where the image stands in the prompt: at its first tokens; [sequences, length]."""
    mask = torch.zeros_like(request.value("input_ids"))
    mask[:, : mask.shape[1] // 2] = 1
    return [mask]


def image_sizes(request: Request) -> list[torch.Tensor]:
    """Height and width of each image; [images, 2]."""
    return [torch.tensor([side(request)] * request.sequences, dtype=torch.int64)]


def pixel_mask(request: Request) -> list[torch.Tensor]:
    """Every pixel counts; [sequences, height, width]."""
    return [torch.ones(request.sequences, *side(request), dtype=torch.int64)]


def spatial_shapes(request: Request) -> list[torch.Tensor]:
    """Rows and columns of patches in each image; [images, 2]."""
    return [torch.tensor([[rows(request)] * 2] * request.sequences, dtype=torch.int64)]


def positions(request: Request) -> list[torch.Tensor]:
    """Column and row of each patch; [images, patches, 2]."""
    count = rows(request)
    places = torch.cartesian_prod(torch.arange(count), torch.arange(count)).flip(-1)
    return [places.repeat(request.sequences, 1, 1)]


def patch_mask(request: Request) -> list[torch.Tensor]:
    """Every patch, or every pixel, counts."""
    patches = torch.ones(request.sequences, rows(request) ** 2, dtype=torch.int64)
    pixels = torch.ones(request.sequences, 1, *side(request), dtype=torch.int64)
    return [patches, pixels] if "spatial_shapes" in request.takes else [pixels, patches]


def aspect_ratio_ids(request: Request) -> list[torch.Tensor]:
    """The first aspect ratio; [sequences, images]."""
    return [torch.ones(request.sequences, 1, dtype=torch.int64)]


def aspect_ratio_mask(request: Request) -> list[torch.Tensor]:
    """Every tile counts; [sequences, images, tiles]."""
    tiles = request.facts.number("max_num_tiles", scope=Scope.VISION, default=1)
    return [torch.ones(request.sequences, 1, tiles, dtype=torch.int64)]


def ones_per_image(request: Request) -> list[torch.Tensor]:
    """One number for each image, a one."""
    return [torch.ones(request.sequences, dtype=torch.int64)]


def region_features(request: Request) -> list[torch.Tensor]:
    """What an object detector found; [sequences, regions, width]."""
    width = request.facts.number("visual_feat_dim", "visual_embedding_dim", default=2048)
    return [torch.randn(request.sequences, 4, width)]


def region_boxes(request: Request) -> list[torch.Tensor]:
    """Where it was found; [sequences, regions, 4]."""
    return [torch.rand(request.sequences, 4, request.facts.number("visual_pos_dim", default=4))]


def high_resolution(request: Request) -> list[torch.Tensor]:
    """The same images for a second tower that wants them larger."""
    config = request.facts.first("high_res_vision_config")
    size = getattr(config, "image_size", 1024)
    return [torch.randn(request.sequences, channels(request), size, size)]


def like_pixels(request: Request) -> list[torch.Tensor]:
    """A second image of the same size."""
    return [torch.randn_like(request.value("pixel_values"))]


def image_attention_mask(request: Request) -> list[torch.Tensor]:
    """Every token sees the image; [sequences, length, images]."""
    length = request.value("input_ids").shape[1]
    return [torch.ones(request.sequences, length, 1, dtype=torch.int64)]


def encoder_states(request: Request) -> list[torch.Tensor]:
    """What an encoder made of its input; [sequences, places, width]."""
    names = ("encoder_hidden_size", "cross_attention_hidden_size", "hidden_size", "d_model")
    width = request.facts.number(*names, default=64)
    return [torch.randn(request.sequences, 16, width)]


VISION: dict[str, Any] = {
    "pixel_values": pixel_values,
    "pixel_values_videos": videos,
    "hidden_states": streams,
    "image_grid_thw": grid,
    "video_grid_thw": grid,
    "grid_thw": grid,
    "image_sizes": image_sizes,
    "flattened_patches": flattened_patches,
    "image_embeds_position_mask": image_places,
    "pixel_mask": pixel_mask,
    "spatial_shapes": spatial_shapes,
    "target_sizes": spatial_shapes,
    "image_grid_hw": spatial_shapes,
    "pixel_position_ids": positions,
    "image_position_ids": positions,
    "pixel_attention_mask": patch_mask,
    "aspect_ratio_ids": aspect_ratio_ids,
    "aspect_ratio_mask": aspect_ratio_mask,
    "merge_sizes": ones_per_image,
    "visual_feats": region_features,
    "visual_pos": region_boxes,
    "image_attention_mask": image_attention_mask,
    "encoder_hidden_states": encoder_states,
    "visual_embeds": region_features,
    "high_res_pixel_values": high_resolution,
    "prompt_pixel_values": like_pixels,
    "prompt_masks": like_pixels,
}
