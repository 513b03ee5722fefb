"""Resizing inside a graph: two products with weights that are computed from the size of the image.

Graphs of other runtimes have their own resize operations, whose antialiasing differs from ours by up to 16 levels of
255 at borders. A product of matrices means the same in all of them, so that one program gives the pixels of
preprocessing, within 2 levels, for every size of image.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from vitrail.base.errors import ConfigError
from vitrail.base.shapes import Images
from vitrail.data.preprocessing import Preprocessing

Weights = Float[Tensor, "new old"]
Fitted = Float[Tensor, "batch channel new_height new_width"]
Whole = Int[Tensor, ""]
"""A size that is known when the graph runs."""
_TAPS = {"nearest": 1, "bilinear": 2, "bicubic": 4, "lanczos": 6}


def check_expressible(preprocessing: Preprocessing) -> None:
    """Refuse preprocessing that a graph cannot repeat pixel for pixel."""
    if preprocessing.interpolation == "lanczos" and preprocessing.antialias:
        raise ConfigError(
            "interpolation 'lanczos' with antialias cannot be part of a graph: its pixels depend on the version of "
            "Pillow; export with `raw`, or give the model bicubic interpolation."
        )


def fit(planes: Images, preprocessing: Preprocessing) -> Fitted:
    """Bring whole images with values from 0 to 255 to a model's size, in whole levels, as preprocessing does."""
    check_expressible(preprocessing)
    sides = [torch.scalar_tensor(planes.shape[axis], dtype=torch.int64) for axis in (2, 3)]
    resized = _resized(sides, preprocessing)
    down, across = (
        _weights(planes.shape[2 + axis], sides[axis], resized[axis], preprocessing.image_size[axis], preprocessing)
        for axis in (0, 1)
    )
    wide = planes @ across.T
    if preprocessing.antialias:  # torch and Pillow round between their two passes
        wide = wide.round().clamp(0, 255)
    return (down @ wide).round().clamp(0, 255)


def _resized(sides: list[Whole], how: Preprocessing) -> list[Whole]:
    """Return the size before the crop, as `Preprocessing.resized` does, for sizes that are known when it runs."""
    high, wide = how.canvas
    if how.geometry == "square":
        return [torch.scalar_tensor(high, dtype=torch.int64), torch.scalar_tensor(wide, dtype=torch.int64)]
    if high == wide:
        short = torch.minimum(sides[0], sides[1])
        return [high * side // short for side in sides]
    height, width = sides
    return [
        torch.maximum(_divided(height * wide, width), torch.scalar_tensor(high, dtype=torch.int64)),
        torch.maximum(_divided(width * high, height), torch.scalar_tensor(wide, dtype=torch.int64)),
    ]


def _weights(length: int, side: Whole, resized: Whole, count: int, how: Preprocessing) -> Weights:
    """Return how much each old pixel, of `length` = `side`, adds to each new one of the centre of the resized side."""
    places = torch.arange(count) + _half(resized - count)
    halves = (2 * places + 1) * side  # centres, in whole parts of 1 / (2 * resized)
    if how.interpolation == "nearest":
        return (torch.div(halves, 2 * resized, rounding_mode="floor")[:, None] == torch.arange(length)).to(
            torch.float32
        )
    if how.antialias:
        weights = _averaged(length, halves, side, resized, how)
    else:
        weights = _tapped(length, halves, side, resized, how)
    return weights / weights.sum(dim=1, keepdim=True)


def _half(number: Whole) -> Whole:
    """Halve a whole number, and round halves to even."""
    half = torch.div(number, 2, rounding_mode="floor")
    return torch.div(number + half % 2, 2, rounding_mode="floor")


def _divided(number: Whole, by: Whole) -> Whole:
    """Divide whole numbers, and round halves to even; fractions would decide ties by their last bit."""
    twice = 2 * number + by
    rounded = torch.div(twice, 2 * by, rounding_mode="floor")
    tie = (twice == rounded * 2 * by).to(torch.int64)
    return rounded - tie * (rounded % 2)


def _averaged(length: int, halves: Tensor, side: Whole, resized: Whole, how: Preprocessing) -> Weights:
    """Weigh every old pixel that a new one covers, as Pillow does."""
    ratio = (side / resized).clamp(min=1.0)
    away = (torch.arange(length) + 0.5 - (halves / (2 * resized))[:, None]).abs() / ratio
    return (1 - away).clamp(min=0) if how.interpolation == "bilinear" else _cubic(away, -0.5)


def _tapped(length: int, halves: Tensor, side: Whole, resized: Whole, how: Preprocessing) -> Weights:
    """Weigh the nearest old pixels alone; past the edge the edge repeats."""
    taps = _TAPS[how.interpolation]
    first = torch.div(halves - resized, 2 * resized, rounding_mode="floor")
    beyond = (halves - resized - first * 2 * resized) / (2 * resized)  # how far the centre is past the first pixel
    steps = torch.arange(taps) - (taps // 2 - 1)
    away = (steps - beyond[:, None]).abs()
    if how.interpolation == "bilinear":
        kernel = 1 - away
    elif how.interpolation == "bicubic":
        kernel = _cubic(away, -0.75)
    else:
        kernel = torch.where(away < 3, torch.sinc(away) * torch.sinc(away / 3), 0.0)
    near = torch.minimum((first[:, None] + steps).clamp(min=0), side - 1)
    return (kernel[:, :, None] * (near[:, :, None] == torch.arange(length))).sum(dim=1)


def _cubic(away: Tensor, sharpness: float) -> Tensor:
    """Return the weight of old pixels by how far they are, for cubic convolution."""
    near = ((sharpness + 2) * away - (sharpness + 3)) * away * away + 1
    far = (((away - 5) * away + 8) * away - 4) * sharpness
    return torch.where(away <= 1, near, torch.where(away < 2, far, 0.0))
