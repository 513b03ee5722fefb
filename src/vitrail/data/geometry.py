"""Crop, resize and flip: the part of augmentation that says where each new pixel comes from.

Photos go one by one through `resize_box`. For small images (28 or 32 pixels, say) the calls would cost more than the
work, so a whole batch of them is two matrix products: what crop, resizing, shift and flip do to the rows of an image
is one matrix, and what they do to its columns another. The weights are whole numbers of which every sum is exact in
float32, so that an image comes out the same in any batch.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float32, Int64
from torch import Tensor

from vitrail.base.shapes import PixelBatch, Pixels
from vitrail.data.augmentation import CROP, FLIP, Augmentation
from vitrail.data.crop import Box, inception_box, pad_shift, shifted
from vitrail.data.resize import resize_box

SMALL_SIDE = 48
SMALL_CHANNELS = 4
ONE = 2**14  # weights are multiples of 1 / ONE; 255 * ONE fits into the 24 bits of a float32

Weights = Float32[Tensor, "batch new old"]
Spans = Int64[Tensor, "batch"]


def cut(pixels: Pixels, augmentation: Augmentation, image_size: tuple[int, int], draws: Sequence[float]) -> Pixels:
    """Crop, resize and flip one image."""
    box = _box(pixels, augmentation, draws)
    pixels = resize_box(pixels, box, image_size, augmentation.interpolation, augmentation.antialias)
    if augmentation.crop == "pad":
        for axis, shift in enumerate(pad_shift(augmentation.pad, draws[CROP]), start=1):
            places = shifted(pixels.shape[axis], shift, augmentation.pad_mode)
            pixels = pixels.index_select(axis, places.clamp(min=0))
            pixels.index_fill_(axis, torch.nonzero(places < 0)[:, 0], 0)
    return pixels.flip(2) if draws[FLIP] < augmentation.flip else pixels


def is_small(pixels: Pixels, augmentation: Augmentation, image_size: tuple[int, int]) -> bool:
    """Tell whether `cut_small` is the way for this image, whatever stands beside it in the batch."""
    channels, height, width = pixels.shape
    return (
        max(height, width, *image_size) <= SMALL_SIDE
        and channels <= SMALL_CHANNELS
        and augmentation.interpolation == "bilinear"
    )


def cut_small(
    images: PixelBatch, augmentation: Augmentation, image_size: tuple[int, int], draws: Sequence[Sequence[float]]
) -> PixelBatch:
    """Crop, resize and flip a batch of small images of one size: new = rows x old x columns^T for each channel."""
    batch, channels, height, width = images.shape
    boxes = torch.tensor([_box(images[0], augmentation, one) for one in draws])
    antialias = augmentation.antialias
    rows = bilinear(boxes[:, 0], boxes[:, 2], height, image_size[0], antialias)
    columns = bilinear(boxes[:, 1], boxes[:, 3], width, image_size[1], antialias)
    if augmentation.crop == "pad":
        shifts = [pad_shift(augmentation.pad, one[CROP]) for one in draws]
        rows = _shift(rows, [down for down, _ in shifts], augmentation)
        columns = _shift(columns, [right for _, right in shifts], augmentation)
    flips = torch.tensor([one[FLIP] < augmentation.flip for one in draws])
    columns = torch.where(flips[:, None, None], columns.flip(1), columns)

    lines = images.permute(0, 2, 3, 1).reshape(batch, height, width * channels).float()
    lines = _rounded(torch.bmm(rows, lines))
    lines = _rounded(torch.bmm(lines, _each_channel(columns, channels)))
    return lines.to(torch.uint8).view(batch, *image_size, channels).permute(0, 3, 1, 2)


def bilinear(starts: Spans, lengths: Spans, old: int, new: int, antialias: bool) -> Weights:
    """Return how much each old pixel counts for each new one, when a span of the old ones is resized.

    A new pixel is a triangle around its centre: as wide as two old pixels, or with antialiasing as two new ones when
    those are larger.
    """
    scale = lengths.float() / new
    centres = starts[:, None] + (torch.arange(new) + 0.5) * scale[:, None] - 0.5
    reach = scale.clamp(min=1.0) if antialias else torch.ones_like(scale)
    away = (torch.arange(old, dtype=torch.float32) - centres[:, :, None]).abs_() / reach[:, None, None]
    inside = (torch.arange(old) >= starts[:, None]) & (torch.arange(old) < (starts + lengths)[:, None])
    weights = ((1 - away).clamp_(min=0) * inside[:, None] * ONE).round_()
    return (weights * (ONE / weights.sum(2, keepdim=True))).round_()


def _box(pixels: Pixels, augmentation: Augmentation, draws: Sequence[float]) -> Box:
    _, height, width = pixels.shape
    if augmentation.crop == "inception":
        return inception_box((height, width), augmentation.area, augmentation.aspect, draws[CROP])
    return 0, 0, height, width


def _shift(weights: Weights, shifts: list[int], augmentation: Augmentation) -> Weights:
    """Let each new row be made as another one was, or of nothing."""
    length = weights.shape[1]
    places = torch.stack([shifted(length, shift, augmentation.pad_mode) for shift in shifts])
    moved = torch.take_along_dim(weights, places.clamp(min=0)[:, :, None], dim=1)
    return moved * (places >= 0)[:, :, None]


def _each_channel(columns: Weights, channels: int) -> Float32[Tensor, "batch old_values new_values"]:
    """Spread a matrix over pixels whose channels lie side by side: each channel is made of its own kind."""
    batch, new, old = columns.shape
    spread = columns.new_zeros(batch, old, channels, new, channels)
    for channel in range(channels):
        spread[:, :, channel, :, channel] = columns.transpose(1, 2)
    return spread.view(batch, old * channels, new * channels)


def _rounded(sums: Float32[Tensor, "batch row value"]) -> Float32[Tensor, "batch row value"]:
    """Bring weighted sums back to values from 0 to 255."""
    return sums.mul_(1 / ONE).round_()
