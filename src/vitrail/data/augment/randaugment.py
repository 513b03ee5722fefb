"""RandAugment: a few operations, drawn from 14, all at one magnitude (Cubuk et al., 2020).

The magnitude goes from 0, where every operation with a strength does nothing, to 10.
"""

import math
from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np
import torch

from vitrail.base.shapes import Pixels
from vitrail.data.augment import enhance

Operation = Literal[
    "identity",
    "autocontrast",
    "equalize",
    "solarize",
    "posterize",
    "brightness",
    "contrast",
    "saturation",
    "sharpness",
    "rotate",
    "shear_x",
    "shear_y",
    "translate_x",
    "translate_y",
]
OPERATIONS: tuple[Operation, ...] = get_args(Operation)
LARGEST = 10.0
GREY = 128
"""The value of pixels from outside of the image: the middle of the range, near 0 for the model."""


def randaugment(pixels: Pixels, magnitude: float, draws: Sequence[float]) -> Pixels:
    """Apply one operation for every two draws: which one, and in which direction."""
    for which, side in zip(draws[::2], draws[1::2], strict=True):
        operation = OPERATIONS[math.floor(which * len(OPERATIONS))]
        pixels = operate(pixels, operation, (magnitude if side < 0.5 else -magnitude) / LARGEST)
    return pixels


def operate(pixels: Pixels, operation: Operation, level: float) -> Pixels:
    """Apply one operation at a level from -1 to 1; its sign is a direction, for those that have one."""
    _, height, width = pixels.shape
    match operation:
        case "identity":
            return pixels
        case "autocontrast":
            return enhance.autocontrast(pixels)
        case "equalize":
            return enhance.equalize(pixels)
        case "solarize":
            return enhance.solarize(pixels, round(256 * (1 - abs(level))))
        case "posterize":
            return enhance.posterize(pixels, 8 - round(4 * abs(level)))
        case "brightness":
            return enhance.brightness(pixels, 1 + 0.9 * level)
        case "contrast":
            return enhance.contrast(pixels, 1 + 0.9 * level)
        case "saturation":
            return enhance.saturation(pixels, 1 + 0.9 * level)
        case "sharpness":
            return enhance.sharpness(pixels, 1 + 0.9 * level)
        case "rotate":
            angle = math.radians(30 * level)
            return warp(pixels, (math.cos(angle), math.sin(angle)), (-math.sin(angle), math.cos(angle)))
        case "shear_x":
            return warp(pixels, (1.0, 0.3 * level), (0.0, 1.0))
        case "shear_y":
            return warp(pixels, (1.0, 0.0), (0.3 * level, 1.0))
        case "translate_x":
            return translate(pixels, 0, math.floor(0.45 * level * width + 0.5))
        case "translate_y":
            return translate(pixels, math.floor(0.45 * level * height + 0.5), 0)


def translate(pixels: Pixels, up: int, left: int) -> Pixels:
    """Move the image by whole pixels."""
    _, height, width = pixels.shape
    moved = torch.full_like(pixels, GREY)
    seen = pixels[:, max(up, 0) : height + min(up, 0), max(left, 0) : width + min(left, 0)]
    moved[:, max(-up, 0) : height - max(up, 0), max(-left, 0) : width - max(left, 0)] = seen
    return moved


def warp(pixels: Pixels, across: tuple[float, float], down: tuple[float, float]) -> Pixels:
    """Take each pixel from the nearest one at a linear function of its place, seen from the centre of the image.

    Source column = across[0] * x + across[1] * y, and the row by `down` in the same way.
    """
    channels, height, width = pixels.shape
    y = np.arange(height, dtype=np.float32)[:, None] - (height - 1) / 2
    x = np.arange(width, dtype=np.float32)[None, :] - (width - 1) / 2
    columns = np.floor(across[0] * x + (across[1] * y + np.float32(width / 2))).astype(np.int32)
    rows = np.floor(down[0] * x + (down[1] * y + np.float32(height / 2))).astype(np.int32)
    inside = (columns.view(np.uint32) < width) & (rows.view(np.uint32) < height)  # below 0 is huge
    cells = np.empty((height * width + 1, channels), dtype=np.uint8)
    cells[:-1] = pixels.permute(1, 2, 0).reshape(-1, channels).numpy()
    cells[-1] = GREY
    chosen = np.where(inside, rows * width + columns, height * width)
    return torch.from_numpy(np.take(cells, chosen, axis=0)).permute(2, 0, 1)
