"""Inputs that are objects of a model's own code, which no size in a config describes.

Each entry says why it is needed; there are few, and a new one wants a reason.
"""

import sys
from typing import Any

import torch

from normscope.inputs.facts import Scope
from normscope.inputs.request import Request


def inference_session(request: Request) -> list[Any]:
    """A video of one frame with one click on it.

    The video versions of SAM take no tensors: frames, clicks and memories live in a session object
    that is defined beside the model.
    """
    source = vars(sys.modules[type(request.module).__module__])
    kind = next((value for name, value in source.items() if name.endswith("Session")), None)
    if kind is None:
        return []
    side = request.facts.number("image_size", scope=Scope.VISION, default=1024)
    dtype = next(iter(request.module.parameters())).dtype
    session = kind(
        video=torch.randn(1, 3, side, side), video_height=side, video_width=side, dtype=dtype
    )
    if hasattr(session, "add_point_inputs"):
        click = {
            "point_coords": torch.full((1, 1, 1, 2), side / 2),
            "point_labels": torch.ones(1, 1, 1, dtype=torch.int32),
        }
        session.add_point_inputs(session.obj_id_to_idx(1), 0, click)
        session.obj_with_new_inputs = [1]
    return [session]


def frame_index(_request: Request) -> list[Any]:
    """The first frame of the session's video."""
    return [0]


def codebook_index(_request: Request) -> list[Any]:
    """Which codebook is predicted: Bark's fine model takes the number itself."""
    return [1]


RECIPES: dict[str, Any] = {
    "inference_session": inference_session,
    "frame_idx": frame_index,
    "codebook_idx": codebook_index,
}
