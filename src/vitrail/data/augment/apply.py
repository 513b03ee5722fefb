"""What training does to one image: a pure function of its pixels, the settings, and some numbers in [0, 1)."""

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

from vitrail.base.shapes import NewPixels, Pixels
from vitrail.data.augment import enhance
from vitrail.data.augment.crop import erase, erase_box
from vitrail.data.augment.geometry import NewBatch, cut, cut_small, is_small
from vitrail.data.augment.randaugment import randaugment
from vitrail.data.augment.settings import ERASE, ERASING, JITTER, NO_AUGMENTATION, OPERATIONS, Augmentation, Draws

__all__ = ["NO_AUGMENTATION", "Augmentation", "augment", "augment_all"]

ERASE_ASPECT = (0.3, 1 / 0.3)
CHUNK = 32  # small images are cut so many at a time: what that needs stays in the cache


def augment(pixels: Pixels, augmentation: Augmentation, image_size: tuple[int, int], draws: Draws) -> NewPixels:
    """Crop, resize, flip, jitter, RandAugment and erase one image."""
    return augment_all([pixels], augmentation, image_size, pixels.shape[0], [draws])[0]


def augment_all(
    pictures: Iterable[Tensor],
    augmentation: Augmentation,
    image_size: tuple[int, int],
    channels: int,
    draws: Sequence[Draws],
) -> NewBatch:
    """Augment a batch, each image as if it were alone.

    The pictures, of any sizes, are asked for one after the other, so that only one photo is in memory at a time. The
    channels of a pixel lie side by side.
    """
    canvas = Canvas(augmentation, image_size, channels, draws)
    for place, pixels in enumerate(pictures):
        canvas.put(place, pixels)
    return canvas.finished()


class Canvas:
    """A batch of augmented images in the making, filled image by image; several can be filled from one reading."""

    def __init__(
        self, augmentation: Augmentation, image_size: tuple[int, int], channels: int, draws: Sequence[Draws]
    ) -> None:
        self.augmentation, self.image_size, self.draws = augmentation, image_size, draws
        self.canvas = torch.empty((len(draws), *image_size, channels), dtype=torch.uint8)
        self.images = self.canvas.permute(0, 3, 1, 2)
        self.waiting: dict[torch.Size, dict[int, Tensor]] = {}

    def put(self, place: int, pixels: Tensor) -> None:
        """Cut an image for its place; small ones wait for others of their size."""
        if is_small(pixels, self.augmentation, self.image_size):
            self.waiting.setdefault(pixels.shape, {})[place] = pixels
        else:
            self.images[place] = cut(pixels, self.augmentation, self.image_size, self.draws[place])

    def finished(self) -> NewBatch:
        """Cut what waits, change the colours, and return the batch."""
        for group in self.waiting.values():
            for start in range(0, len(group), CHUNK):
                some = list(group)[start : start + CHUNK]
                small = torch.stack([group[place].permute(1, 2, 0) for place in some]).permute(0, 3, 1, 2)
                done = cut_small(small, self.augmentation, self.image_size, [self.draws[place] for place in some])
                self.canvas.index_copy_(0, torch.tensor(some), done.permute(0, 2, 3, 1))
        if self.augmentation.recolours:
            for place in range(len(self.draws)):
                self.images[place] = recolour(self.images[place], self.augmentation, self.draws[place])
        return self.images


def recolour(pixels: Pixels, augmentation: Augmentation, draws: Draws) -> Pixels:
    """Do what comes after the crop: jitter, RandAugment, erase."""
    if augmentation.jitters:
        pixels = jitter(pixels, augmentation, draws[JITTER])
    if augmentation.layers:
        pixels = randaugment(pixels, augmentation.magnitude, draws[OPERATIONS])
    if draws[ERASING] < augmentation.erase:
        size = (pixels.shape[1], pixels.shape[2])
        box = erase_box(size, augmentation.erase_area, ERASE_ASPECT, draws[ERASE])
        pixels = erase(pixels, box, draws[ERASE][-1]) if box else pixels
    return pixels


def jitter(pixels: Pixels, augmentation: Augmentation, draws: Sequence[float]) -> Pixels:
    """Change brightness, contrast, saturation and hue by random amounts, in a random order."""
    changes = (
        (enhance.brightness, augmentation.brightness, 1.0),
        (enhance.contrast, augmentation.contrast, 1.0),
        (enhance.saturation, augmentation.saturation, 1.0),
        (enhance.hue, augmentation.hue, 0.0),
    )
    amounts, order = draws[:4], draws[4:]
    for at in sorted(range(4), key=lambda at: order[at]):
        change, strength, neutral = changes[at]
        if strength:
            pixels = change(pixels, neutral + strength * (2 * amounts[at] - 1))
    return pixels
