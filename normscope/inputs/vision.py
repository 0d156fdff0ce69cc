"""Sizes -> what goes with images: grids, masks, positions, regions; and videos."""

from typing import Any

import torch
from torch import nn

from normscope.inputs.facts import Scope
from normscope.inputs.images import (
    channels,
    grid,
    packed,
    patch,
    patch_widths,
    pixel_values,
    rows,
    side,
    sizes,
)
from normscope.inputs.request import Request
from normscope.inputs.stems import first_width
from normscope.inputs.text import image_queries


def videos(request: Request) -> list[torch.Tensor]:
    """Short videos; [sequences, frames, channels, height, width] or packed patches."""
    if "video_grid_thw" in request.takes:
        return packed(request)
    frames = request.facts.number("num_frames", "frames_per_clip", scope=Scope.VISION, default=2)
    return [
        torch.randn(request.sequences, 1, channels(request), *size).repeat(1, frames, 1, 1, 1)
        for size in dict.fromkeys((side(request), *sizes(request)[:2]))
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
    widths = dict.fromkeys((width, stem, request.facts.number("input_size", default=width)))
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
    mask[:, : image_queries(request) or mask.shape[1] // 2] = 1
    return [mask]


def image_sizes(request: Request) -> list[torch.Tensor]:
    """Height and width of each image; [images, 2]."""
    return [torch.tensor([side(request)] * request.sequences, dtype=torch.int64)]


def pixel_mask(request: Request) -> list[torch.Tensor]:
    """Every pixel counts; [sequences, height, width]."""
    size = _size_given(request)
    return [torch.ones(request.sequences, *size, dtype=torch.int64)]


def _size_given(request: Request) -> tuple[int, int]:
    """Return height and width of the images that are given in the same call."""
    images = request.value("pixel_values") if "pixel_values" in request.takes else None
    if images is None or images.ndim < 4:
        return side(request)
    return images.shape[-2], images.shape[-1]


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
    pixels = torch.ones(request.sequences, 1, *_size_given(request), dtype=torch.int64)
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


def codebook_pixels(request: Request) -> list[torch.Tensor]:
    """Images for a codebook whose tokens are to be predicted; half as large as the others."""
    height, width = side(request)
    return [torch.randn(request.sequences, channels(request), height // 2, width // 2)]


def masked_patches(request: Request) -> list[torch.Tensor]:
    """The first half of the patches of a video is hidden; [sequences, patches], booleans."""
    height, width = side(request)
    frames = request.facts.number("num_frames", scope=Scope.VISION, default=1)
    depth = request.facts.number("tubelet_size", scope=Scope.VISION, default=1)
    count = frames // depth * (height // patch(request)) * (width // patch(request))
    return [(torch.arange(count) < count // 2).repeat(request.sequences, 1)]


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
    "image_merge_sizes": ones_per_image,
    "classes_structure": ones_per_image,
    "visual_feats": region_features,
    "visual_pos": region_boxes,
    "image_attention_mask": image_attention_mask,
    "encoder_hidden_states": encoder_states,
    "visual_embeds": region_features,
    "high_res_pixel_values": high_resolution,
    "prompt_pixel_values": like_pixels,
    "prompt_masks": like_pixels,
    "codebook_pixel_values": codebook_pixels,
    "bool_masked_pos": masked_patches,
}
