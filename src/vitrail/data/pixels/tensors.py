"""Arrays of pixels as tensors, and tensors with other numbers of channels."""

import numpy as np
import torch

from vitrail.base.errors import ImageError
from vitrail.base.shapes import NewPixels, Pixels
from vitrail.data.pixels.colours import array_to_channels


def from_array(array: np.ndarray) -> Pixels:
    """Turn height x width, or height x width x channel, of uint8 into pixels that share the array's memory if it can.

    An array that is read-only, or whose rows are not in order, is copied.
    """
    if array.dtype != np.uint8:
        raise ImageError(f"an image array must be of uint8, 0 to 255, not {array.dtype}; scale it first.")
    if array.ndim not in (2, 3) or 0 in array.shape:
        raise ImageError(
            f"an image array must be height x width or height x width x channel, and not empty, not {array.shape}."
        )
    array = array[:, :, None] if array.ndim == 2 else array
    if not array.flags.c_contiguous or not array.flags.writeable:
        array = np.array(array, order="C")
    return torch.from_numpy(array).permute(2, 0, 1)


def to_channels(pixels: Pixels, channels: int) -> NewPixels:
    """Give an image another number of channels: grey repeated for three, ITU-R 601 luma for one."""
    if pixels.shape[0] == channels:
        return pixels
    return from_array(array_to_channels(pixels.permute(1, 2, 0).numpy(), channels))
