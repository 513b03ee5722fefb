"""Random changes of colour: one image at a time, or many small ones together, with the same bits."""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Float32
from torch import Tensor

from vitrail.base.shapes import PixelBatch, Pixels
from vitrail.data.augment import enhance
from vitrail.data.augment.settings import Augmentation

Factors = Float32[Tensor, "batch"]
"""A number for each image."""


def jitter(pixels: Pixels, augmentation: Augmentation, draws: Sequence[float]) -> Pixels:
    """Change brightness, contrast, saturation and hue by random amounts, in a random order."""
    changes = (enhance.brightness, enhance.contrast, enhance.saturation, enhance.hue)
    amounts = _amounts(augmentation, draws)
    for at in _order(draws):
        if (amount := amounts[at]) is not None:
            pixels = changes[at](pixels, amount)
    return pixels


def jitter_all(images: PixelBatch, augmentation: Augmentation, draws: Sequence[Sequence[float]]) -> None:
    """Do the same to every image of a batch, in place: whatever comes first, then whatever comes second, ..."""
    changes = (brighten_all, contrast_all, saturate_all, turn_all)
    amounts, orders = [_amounts(augmentation, one) for one in draws], [_order(one) for one in draws]
    for turn in range(4):
        for at, change in enumerate(changes):
            if amounts[0][at] is None:
                continue
            some = [number for number, order in enumerate(orders) if order[turn] == at]
            if some:
                chosen = torch.tensor(some)
                images[chosen] = change(images[chosen], [amounts[number][at] or 0.0 for number in some])


def brighten_all(images: PixelBatch, factors: Sequence[float]) -> PixelBatch:
    """Blend each image with black."""
    return _blended(images.float(), torch.zeros(len(images)), factors)


def contrast_all(images: PixelBatch, factors: Sequence[float]) -> PixelBatch:
    """Blend each image with its mean grey."""
    greys = torch.tensor([float(enhance.mean_grey(pixels)) for pixels in images])
    return _blended(images.float(), greys, factors)


def saturate_all(images: PixelBatch, factors: Sequence[float]) -> PixelBatch:
    """Blend each image with its grey version."""
    if images.shape[1] != 3:
        return images
    colours = images.permute(0, 2, 3, 1).float()
    grey = torch.stack([image.reshape(-1, 3) @ enhance.LUMA for image in colours])  # by itself: rounding must not vary
    other = grey.mul_(torch.tensor([1 - factor for factor in factors])[:, None])
    blended = colours.mul_(_column(factors)).add_(other.view(*colours.shape[:3], 1))
    return blended.clamp_(0, 255).to(torch.uint8).permute(0, 3, 1, 2)


def turn_all(images: PixelBatch, turns: Sequence[float]) -> PixelBatch:
    """Turn the colour circle of each image."""
    if images.shape[1] != 3:
        return images
    sixths = torch.tensor([6 * turn for turn in turns])[:, None, None]
    return enhance.turned(images.permute(1, 0, 2, 3).float(), sixths).permute(1, 0, 2, 3)


def _amounts(augmentation: Augmentation, draws: Sequence[float]) -> list[float | None]:
    """Return the factors, and the turns of the hue, that draws stand for; None where a change is off."""
    strengths = (augmentation.brightness, augmentation.contrast, augmentation.saturation, augmentation.hue)
    around = (1.0, 1.0, 1.0, 0.0)
    return [
        neutral + strength * (2 * draw - 1) if strength else None
        for neutral, strength, draw in zip(around, strengths, draws, strict=False)
    ]


def _order(draws: Sequence[float]) -> list[int]:
    return sorted(range(4), key=lambda at: draws[4 + at])


def _blended(
    images: Float[Tensor, "batch channel height width"], others: Factors, factors: Sequence[float]
) -> PixelBatch:
    """Compute other + (value - other) * factor, cut to whole numbers as `enhance` cuts."""
    other = others[:, None, None, None]
    return images.sub_(other).mul_(_column(factors)).add_(other).clamp_(0, 255).to(torch.uint8)


def _column(factors: Sequence[float]) -> Float32[Tensor, "batch 1 1 1"]:
    return torch.tensor(factors)[:, None, None, None]
