"""Crop, resize and flip: the part of augmentation that decides where each new pixel comes from.

Photos go one by one through `resize_box`. For small images (such as 28 or 32 pixels) the calls would cost more than the
work, so a whole batch of them is two matrix products: what crop and resizing do to the rows of an image is one matrix,
and what they do to its columns another. The weights are whole numbers of which every sum is exact in float32, so that
an image comes out the same in any batch.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float32, Int64, UInt8
from torch import Tensor

from vitrail.base.shapes import NewPixels, PixelBatch, Pixels
from vitrail.data.augment.crop import Box, inception_box, pad_corner, shift
from vitrail.data.augment.settings import CROP, FLIP, Augmentation, Draws
from vitrail.data.pixels.resize import resize_box

SMALL_SIDE = 48
ONE = 2**14  # weights are multiples of 1 / ONE; 255 * ONE fits into the 24 bits of a float32

NewBatch = UInt8[Tensor, "batch channel new_height new_width"]
Weights = Float32[Tensor, "batch new old"]
Spans = Int64[Tensor, "batch"]


def rows_needed(size: tuple[int, int], augmentation: Augmentation, draws: Draws) -> int:
    """Count the rows of an image, from the top, that `cut` reads."""
    top, _, height, _ = _box(size, augmentation, draws)
    return top + height


def cut(pixels: Pixels, augmentation: Augmentation, image_size: tuple[int, int], draws: Draws) -> NewPixels:
    """Crop, resize and flip one image."""
    box = _box((pixels.shape[1], pixels.shape[2]), augmentation, draws)
    pixels = resize_box(pixels, box, image_size, augmentation.interpolation, augmentation.antialias)
    if augmentation.crop == "pad":
        pixels = _shift(pixels[None], augmentation, [draws])[0]
    return pixels.flip(2) if draws[FLIP] < augmentation.flip else pixels


def is_small(pixels: Pixels, augmentation: Augmentation, image_size: tuple[int, int]) -> bool:
    """Return whether `cut_small` is used for this image, whatever else is in the batch."""
    _, height, width = pixels.shape
    return max(height, width, *image_size) <= SMALL_SIDE and augmentation.interpolation == "bilinear"


def cut_small(
    images: PixelBatch, augmentation: Augmentation, image_size: tuple[int, int], draws: Sequence[Draws]
) -> NewBatch:
    """Crop, resize and flip a batch of small images of one size."""
    if augmentation.crop == "inception" or tuple(images.shape[2:]) != image_size:
        size = (images.shape[2], images.shape[3])
        boxes = torch.tensor([_box(size, augmentation, one) for one in draws])
        images = resize_boxes(images, boxes, image_size, augmentation.antialias)
    if augmentation.crop == "pad":
        images = _shift(images, augmentation, draws)
    flips = torch.tensor([one[FLIP] < augmentation.flip for one in draws])
    return torch.where(flips[:, None, None, None], images.flip(3), images) if flips.any() else images


def resize_boxes(
    images: PixelBatch, boxes: Int64[Tensor, "batch 4"], size: tuple[int, int], antialias: bool
) -> NewBatch:
    """Cut a box out of each image and resize it: new = rows x old x columns^T, bilinear, for each channel."""
    _, _, height, width = images.shape
    rows = bilinear(boxes[:, 0], boxes[:, 2], height, size[0], antialias)
    columns = bilinear(boxes[:, 1], boxes[:, 3], width, size[1], antialias)
    narrowed = weighted(columns, images.permute(0, 3, 2, 1).float())
    return weighted(rows, narrowed.transpose(1, 2)).to(torch.uint8).permute(0, 3, 1, 2)


def bilinear(starts: Spans, lengths: Spans, old: int, new: int, antialias: bool) -> Weights:
    """Return how much each old pixel counts for each new one, when a span of the old ones is resized.

    A new pixel is a triangle around its centre: as wide as two old pixels, or with antialiasing as two new ones when
    those are larger.
    """
    scale = lengths.float() / new
    centres = starts[:, None] + (torch.arange(new) + 0.5) * scale[:, None] - 0.5
    places = torch.arange(old, dtype=torch.float32)
    if not antialias:
        inside = centres.clamp(starts[:, None], (starts + lengths - 1)[:, None])  # at the edge, the edge itself
        return (1 - (places - inside[:, :, None]).abs_()).clamp_(min=0).mul_(ONE).round_()
    away = (places - centres[:, :, None]).abs_() / scale.clamp(min=1.0)[:, None, None]
    within = (places >= starts[:, None]) & (places < (starts + lengths)[:, None])
    weights = ((1 - away).clamp_(min=0) * within[:, None] * ONE).round_()
    return (weights * (ONE / weights.sum(2, keepdim=True))).round_()


def _box(size: tuple[int, int], augmentation: Augmentation, draws: Draws) -> Box:
    if augmentation.crop == "inception":
        return inception_box(size, augmentation.area, augmentation.aspect, draws[CROP])
    return 0, 0, *size


def _shift(images: PixelBatch, augmentation: Augmentation, draws: Sequence[Draws]) -> PixelBatch:
    corners = [pad_corner(augmentation.pad, one[CROP]) for one in draws]
    return shift(images, corners, augmentation.pad, augmentation.pad_mode)


def weighted(
    weights: Weights, rows: Float32[Tensor, "batch old across channel"]
) -> Float32[Tensor, "batch new across channel"]:
    """Make each new row from the old ones, in whole levels."""
    batch, old, across, channels = rows.shape
    sums = torch.bmm(weights, rows.reshape(batch, old, across * channels))
    return sums.mul_(1 / ONE).round_().view(batch, -1, across, channels)
