"""Images of another size, on uint8: nearest, bilinear, bicubic and Lanczos, with antialiasing or without.

Pixels are squares with half-pixel centres, everywhere. With antialiasing the results are Pillow's within a level or
so; without it a new pixel is a weighted sum of its nearest old ones, however much the image shrinks, as in TensorFlow.
Bilinear and bicubic with antialiasing, and bilinear without, are torch's: one quick pass over pixels whose channels lie
side by side in memory, as those of `decode` do.
"""

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from PIL import Image
from torch import Tensor

from vitrail.base.shapes import NewPixels, Pixels
from vitrail.data.preprocessing import Interpolation

Size = tuple[int, int]
Box = tuple[int, int, int, int]

_PILLOW = {
    "bilinear": Image.Resampling.BILINEAR,
    "bicubic": Image.Resampling.BICUBIC,
    "lanczos": Image.Resampling.LANCZOS,
}
_TAPS = {"nearest": 1, "bilinear": 2, "bicubic": 4, "lanczos": 6}
_CUBIC = -0.75  # torch's without antialiasing; with it, torch's and Pillow's is -0.5


def resize(pixels: Pixels, size: Size, interpolation: Interpolation = "bilinear", antialias: bool = True) -> NewPixels:
    """Resize an image of any number of channels to (height, width)."""
    if tuple(pixels.shape[1:]) == size:
        return pixels
    wrong = pixels.shape[0] > 4 and size[1] == 1  # torch's pixels are, of many channels in a single column
    if not wrong and (interpolation == "bilinear" or (interpolation == "bicubic" and antialias)):
        # torch has a path twice as fast for pixels without gaps, if the strides of the batch show that too
        whole = pixels.permute(1, 2, 0).contiguous()[None].permute(0, 3, 1, 2)
        resized = F.interpolate(whole, size, mode=interpolation, align_corners=False, antialias=antialias)
        return side_by_side(resized[0])
    # torch clips bicubic between its two passes when it does not average, and is inexact about nearest
    return resize_window(pixels, size, (0, 0, *size), interpolation, antialias)


def resize_box(
    pixels: Pixels, box: Box, size: Size, interpolation: Interpolation = "bilinear", antialias: bool = True
) -> NewPixels:
    """Cut out (top, left, height, width) and resize it to (height, width)."""
    top, left, height, width = box
    return resize(pixels[:, top : top + height, left : left + width], size, interpolation, antialias)


def resize_window(
    pixels: Pixels, size: Size, window: Box, interpolation: Interpolation = "bilinear", antialias: bool = True
) -> NewPixels:
    """Resize to (height, width) and cut out (top, left, height, width), without ever making what is cut off.

    For images of which the resized whole would be huge, as one of 1x65535 pixels with its short side at 256.
    """
    if antialias and interpolation != "nearest":
        return _window_by_pillow(pixels, size, window, interpolation)
    return _window_by_taps(pixels, size, window, interpolation)


def side_by_side(pixels: Pixels) -> Pixels:
    """Return the same pixels with the channels of each pixel side by side in memory."""
    return pixels.permute(1, 2, 0).contiguous().permute(2, 0, 1)


def _window_by_pillow(pixels: Pixels, size: Size, window: Box, interpolation: Interpolation) -> NewPixels:
    top, left, height, width = window
    old_height, old_width = pixels.shape[1:]
    down, right = old_height / size[0], old_width / size[1]
    box = (
        left * right,
        top * down,
        min((left + width) * right, old_width),  # rounding must not lead out of the image
        min((top + height) * down, old_height),
    )
    channels = [
        np.asarray(Image.fromarray(channel).resize((width, height), _PILLOW[interpolation], box))
        for channel in pixels.numpy()
    ]
    return torch.from_numpy(np.stack(channels, axis=2)).permute(2, 0, 1)


def _window_by_taps(pixels: Pixels, size: Size, window: Box, interpolation: Interpolation) -> NewPixels:
    top, left, height, width = window
    rows, row_weights = _taps(pixels.shape[1], size[0], top, height, interpolation)
    columns, column_weights = _taps(pixels.shape[2], size[1], left, width, interpolation)
    near = _gather(pixels, rows.flatten(), columns.flatten())
    if interpolation == "nearest":
        return near
    near = near.float().permute(1, 2, 0)
    mixed = torch.einsum("hixc,hi->hxc", near.unflatten(0, rows.shape), row_weights)
    mixed = torch.einsum("hwjc,wj->hwc", mixed.unflatten(1, columns.shape), column_weights)
    return side_by_side(mixed.round_().clamp_(0, 255).to(torch.uint8).permute(2, 0, 1))


def _gather(pixels: Pixels, rows: Int[Tensor, " new_height"], columns: Int[Tensor, " new_width"]) -> NewPixels:
    """Pick rows and columns, first those that leave less."""
    picked = pixels.permute(1, 2, 0)
    if rows.shape[0] * picked.shape[1] <= picked.shape[0] * columns.shape[0]:
        picked = picked.index_select(0, rows).index_select(1, columns)
    else:
        picked = picked.index_select(1, columns).index_select(0, rows)
    return picked.permute(2, 0, 1)


def _taps(
    length: int, resized: int, start: int, count: int, interpolation: Interpolation
) -> tuple[Int[Tensor, "{count} tap"], Float[Tensor, "{count} tap"]]:
    """Return which old pixels make each new one of a window, and with which weights; past the edge the edge repeats."""
    taps = _TAPS[interpolation]
    halves = (2 * torch.arange(start, start + count) + 1) * length  # centres, in whole parts of 1 / (2 * resized)
    if interpolation == "nearest":
        return (halves // (2 * resized))[:, None], torch.ones(count, 1)
    first = (halves - resized).div(2 * resized, rounding_mode="floor") - (taps // 2 - 1)
    places = first[:, None] + torch.arange(taps)
    centres = halves.double() / (2 * resized) - 0.5
    weights = _kernel((places - centres[:, None]).abs(), interpolation)
    return places.clamp(0, length - 1), (weights / weights.sum(1, keepdim=True)).float()


def _kernel(away: Float[Tensor, "new tap"], interpolation: Interpolation) -> Float[Tensor, "new tap"]:
    """Return the weight of old pixels by how far they are."""
    if interpolation == "bilinear":
        return 1 - away
    if interpolation == "lanczos":
        return torch.where(away < 3, torch.sinc(away) * torch.sinc(away / 3), 0.0)
    near = (_CUBIC + 2) * away**3 - (_CUBIC + 3) * away**2 + 1
    far = _CUBIC * (away**3 - 5 * away**2 + 8 * away - 4)
    return torch.where(away <= 1, near, far)
