"""Where to cut: boxes as pure functions of an image's size and a few numbers in [0, 1)."""

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
import torch

from vitrail.base.shapes import PixelBatch, Pixels

Box = tuple[int, int, int, int]
"""Top, left, height and width, in pixels."""
Range = tuple[float, float]
PadMode = Literal["reflect", "zero"]

TRIES = 10
INCEPTION_DRAWS = 2 * TRIES + 2
ERASE_DRAWS = 2 * TRIES + 3


def inception_box(size: tuple[int, int], area: Range, aspect: Range, draws: Sequence[float]) -> Box:
    """Choose a box of a random shape, then a random height for which its area is allowed, then a place.

    This is the rule of the Inception networks, and the reference release's: the aspect ratio (width / height) and
    the height are uniform. Not the same as torchvision's, where the area and the logarithm of the ratio are.
    A shape of which no box fits is drawn again; at last the largest box of the nearest shape is cut from the centre.
    """
    rows, columns = size
    for shape, scale in zip(draws[0 : 2 * TRIES : 2], draws[1 : 2 * TRIES : 2], strict=True):
        ratio = aspect[0] + shape * (aspect[1] - aspect[0])
        lowest = math.ceil(math.sqrt(area[0] * rows * columns / ratio))
        highest = math.floor(min(rows, columns / ratio, math.sqrt(area[1] * rows * columns / ratio)))
        if max(lowest, 1) <= highest:
            height = max(lowest, 1) + math.floor(scale * (highest - max(lowest, 1) + 1))
            width = min(max(round(height * ratio), 1), columns)
            return *_place(size, (height, width), draws[2 * TRIES :]), height, width
    ratio = min(max(columns / rows, aspect[0]), aspect[1])
    height = max(min(rows, math.floor(columns / ratio)), 1)
    width = max(min(columns, round(height * ratio)), 1)
    return (rows - height) // 2, (columns - width) // 2, height, width


def pad_corner(pad: int, draws: Sequence[float]) -> tuple[int, int]:
    """Choose the top left corner of an image-sized window on an image with a border of `pad` pixels."""
    return _place((2 * pad, 2 * pad), (0, 0), draws)


def shift(images: PixelBatch, corners: Sequence[tuple[int, int]], pad: int, mode: PadMode) -> PixelBatch:
    """Put a border around each image and cut its window out of that, which moves it by up to `pad` pixels.

    A mirror does not repeat the edge: 2 1 0 1 2 ...
    """
    _, _, height, width = images.shape
    old = images.permute(0, 2, 3, 1).numpy()
    border = ((0, 0), (pad, pad), (pad, pad), (0, 0))
    padded = np.pad(old, border, mode="reflect" if mode == "reflect" else "constant")
    new = np.empty(old.shape, dtype=np.uint8)
    for at, (top, left) in enumerate(corners):
        new[at] = padded[at, top : top + height, left : left + width]
    return torch.from_numpy(new).permute(0, 3, 1, 2)


def erase_box(size: tuple[int, int], area: Range, aspect: Range, draws: Sequence[float]) -> Box | None:
    """Choose a box of random area and shape that lies inside of the image, or none when ten did not fit.

    The area is uniform and the aspect ratio (height / width) is uniform in its logarithm, as in the paper of random
    erasing.
    """
    rows, columns = size
    low, high = math.log(aspect[0]), math.log(aspect[1])
    for scale, shape in zip(draws[0 : 2 * TRIES : 2], draws[1 : 2 * TRIES : 2], strict=True):
        pixels = rows * columns * (area[0] + scale * (area[1] - area[0]))
        ratio = math.exp(low + shape * (high - low))
        height, width = round(math.sqrt(pixels * ratio)), round(math.sqrt(pixels / ratio))
        if 1 <= height < rows and 1 <= width < columns:
            return *_place(size, (height, width), draws[2 * TRIES :]), height, width
    return None


def erase(pixels: Pixels, box: Box, draw: float) -> Pixels:
    """Fill a box with noise, every value equally likely."""
    top, left, height, width = box
    noise = np.random.Generator(np.random.Philox(key=int(draw * 2**53)))
    erased = pixels.clone()
    erased[:, top : top + height, left : left + width] = torch.from_numpy(
        noise.integers(0, 256, (height, width, pixels.shape[0]), dtype=np.uint8)
    ).permute(2, 0, 1)
    return erased


def _place(size: tuple[int, int], box: tuple[int, int], draws: Sequence[float]) -> tuple[int, int]:
    """Choose the top left corner of a box, all equally likely."""
    return math.floor(draws[0] * (size[0] - box[0] + 1)), math.floor(draws[1] * (size[1] - box[1] + 1))
