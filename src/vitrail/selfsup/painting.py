"""Patches as pictures: from a model's numbers back to pixels, and into the images that they were cut from."""

import torch
from jaxtyping import Float
from torch import Tensor

from vitrail.base.shapes import PixelBatch
from vitrail.data.preprocessing import Preprocessing
from vitrail.model.corruption import SomePatches
from vitrail.model.patches import Size, patch_grid, patchify, unpatchify

SomePixels = Float[Tensor, "batch some pixels"]
"""Pixels of some patches of each image: channel, then row, column."""
GREY = 128.0
"""What a hidden patch looks like."""


def denormalise(pixels: SomePixels, preprocessing: Preprocessing) -> SomePixels:
    """Turn a model's input back into pixels of 0 to 255."""
    mean, std = (torch.tensor(values, device=pixels.device) for values in (preprocessing.mean, preprocessing.std))
    channels = pixels.unflatten(2, (len(mean), -1))
    return (255 * (channels * std[:, None] + mean[:, None])).flatten(2)


def paste(images: PixelBatch, patch_size: Size, places: SomePatches, pixels: SomePixels | float) -> PixelBatch:
    """Put patches into images, at the places with these numbers; one number is a colour for all."""
    patches = patchify(images.float(), patch_size)
    wide = places[:, :, None].expand(-1, -1, patches.shape[2])
    new = pixels if isinstance(pixels, Tensor) else torch.full_like(wide, pixels, dtype=patches.dtype)
    patches = patches.scatter(1, wide, new.to(patches.dtype))
    grid = patch_grid((images.shape[2], images.shape[3]), patch_size)
    return unpatchify(patches, patch_size, grid).round().clamp(0, 255).to(torch.uint8)
