"""Images of another size, on uint8: nearest, bilinear, bicubic and Lanczos, with antialiasing or without.

Pixels are squares with half-pixel centres, everywhere. With antialiasing the results are Pillow's within one level;
without it a new pixel is a weighted sum of its nearest old ones, however much the image shrinks, as in TensorFlow.
torch does the common cases in one pass over pixels that lie colour by colour in memory, as ours do.
"""

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image
from torch import Tensor

from vitrail.base.shapes import Pixels
from vitrail.data.preprocessing import Interpolation

_PILLOW = {
    "nearest": Image.Resampling.NEAREST,
    "bilinear": Image.Resampling.BILINEAR,
    "bicubic": Image.Resampling.BICUBIC,
    "lanczos": Image.Resampling.LANCZOS,
}
_TAPS = {"nearest": 1, "bilinear": 2, "bicubic": 4, "lanczos": 6}
_CUBIC = -0.75  # torch's choice without antialiasing; with it, torch and Pillow have -0.5


def resize(
    pixels: Pixels, size: tuple[int, int], interpolation: Interpolation = "bilinear", antialias: bool = True
) -> Pixels:
    """Resize an image of any number of channels to (height, width)."""
    height, width = pixels.shape[1:]
    if (height, width) == size:
        return pixels
    if interpolation == "lanczos":
        return resize_window(pixels, size, (0, 0, *size), interpolation, antialias)
    if interpolation == "nearest":
        resized = F.interpolate(pixels[None], size, mode="nearest-exact")
    else:
        resized = F.interpolate(pixels[None], size, mode=interpolation, align_corners=False, antialias=antialias)
    return _colour_by_colour(resized[0])


def resize_box(
    pixels: Pixels,
    box: tuple[int, int, int, int],
    size: tuple[int, int],
    interpolation: Interpolation = "bilinear",
    antialias: bool = True,
) -> Pixels:
    """Cut out (top, left, height, width) and resize it to (height, width)."""
    top, left, height, width = box
    return resize(pixels[:, top : top + height, left : left + width], size, interpolation, antialias)


def resize_window(
    pixels: Pixels,
    size: tuple[int, int],
    window: tuple[int, int, int, int],
    interpolation: Interpolation = "bilinear",
    antialias: bool = True,
) -> Pixels:
    """Resize to (height, width) and cut out (top, left, height, width), without ever making what is cut off.

    For images of which the resized whole would be huge: one of 1x65535 pixels with its short side at 256.
    """
    return (
        _window_by_pillow(pixels, size, window, interpolation)
        if antialias
        else _window_by_taps(pixels, size, window, interpolation)
    )


def _window_by_pillow(
    pixels: Pixels, size: tuple[int, int], window: tuple[int, int, int, int], interpolation: Interpolation
) -> Pixels:
    top, left, height, width = window
    down, right = pixels.shape[1] / size[0], pixels.shape[2] / size[1]
    box = (left * right, top * down, (left + width) * right, (top + height) * down)
    box = (*box[:2], min(box[2], pixels.shape[2]), min(box[3], pixels.shape[1]))  # rounding must not leave the image
    channels = [
        np.asarray(Image.fromarray(channel).resize((width, height), _PILLOW[interpolation], box))
        for channel in pixels.numpy()
    ]
    return _colour_by_colour(torch.from_numpy(np.stack(channels)))


def _window_by_taps(
    pixels: Pixels, size: tuple[int, int], window: tuple[int, int, int, int], interpolation: Interpolation
) -> Pixels:
    top, left, height, width = window
    rows, row_weights = _taps(pixels.shape[1], size[0], top, height, interpolation)
    columns, column_weights = _taps(pixels.shape[2], size[1], left, width, interpolation)
    near = pixels[:, rows.reshape(-1, 1), columns.reshape(1, -1)].float()  # channel, height * tap, width * tap
    near = near.unflatten(2, columns.shape).unflatten(1, rows.shape)
    mixed = torch.einsum("chiwj,hi,wj->chw", near, row_weights, column_weights)
    return _colour_by_colour(mixed.round_().clamp_(0, 255).to(torch.uint8))


def _taps(length: int, resized: int, start: int, count: int, interpolation: Interpolation) -> tuple[Tensor, Tensor]:
    """Return which old pixels make each new one of a window, and with which weights; beyond the edge it repeats."""
    taps = _TAPS[interpolation]
    centre = (torch.arange(start, start + count, dtype=torch.float64) + 0.5) * (length / resized) - 0.5
    first = (centre if taps > 1 else centre + 0.5).floor() - (taps - 1) // 2
    places = first[:, None] + torch.arange(taps, dtype=torch.float64)
    weights = _kernel(places - centre[:, None], interpolation)
    return places.clamp(0, length - 1).long(), (weights / weights.sum(1, keepdim=True)).float()


def _kernel(distance: Tensor, interpolation: Interpolation) -> Tensor:
    away = distance.abs()
    match interpolation:
        case "nearest":
            return torch.ones_like(away)
        case "bilinear":
            return 1 - away
        case "bicubic":
            near = (_CUBIC + 2) * away**3 - (_CUBIC + 3) * away**2 + 1
            far = _CUBIC * (away**3 - 5 * away**2 + 8 * away - 4)
            return torch.where(away <= 1, near, far)
        case "lanczos":
            return torch.where(away < 3, torch.sinc(away) * torch.sinc(away / 3), 0.0)


def _colour_by_colour(pixels: Pixels) -> Pixels:
    """Return the same pixels with the channels of one pixel side by side in memory."""
    return pixels.permute(1, 2, 0).contiguous().permute(2, 0, 1)
