"""The augmentation of one image: a pure function of its pixels, the settings, and some numbers in [0, 1)."""

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

from vitrail.base.shapes import NewPixels, PixelBatch, Pixels
from vitrail.data.augment import enhance
from vitrail.data.augment.blur import blur
from vitrail.data.augment.crop import erase, erase_box
from vitrail.data.augment.geometry import NewBatch, cut, cut_small, is_small
from vitrail.data.augment.jitter import jitter, jitter_all
from vitrail.data.augment.randaugment import randaugment
from vitrail.data.augment.settings import (
    BLURRING,
    DEVIATION,
    ERASE,
    ERASING,
    GREYING,
    JITTER,
    JITTERING,
    NO_AUGMENTATION,
    OPERATIONS,
    SOLARIZING,
    Augmentation,
    Draws,
)

__all__ = ["NO_AUGMENTATION", "Augmentation", "augment", "augment_all"]

ERASE_ASPECT = (0.3, 1 / 0.3)
CHUNK = 32  # small images are cut 32 at a time, so that the data stays in the cache
VALUES = 2**17  # images of so few values are recoloured together, for the same reason
MIDDLE = 128


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

    The pictures, of any sizes, are requested one after the other, so that only one photo is in memory at a time. The
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
                cuts = cut_small(small, self.augmentation, self.image_size, [self.draws[place] for place in some])
                self.canvas.index_copy_(0, torch.tensor(some), cuts.permute(0, 2, 3, 1))
        if self.augmentation.recolours:
            count = max(VALUES // max(self.images[:1].numel(), 1), 1)
            for start in range(0, len(self.draws), count):
                recolour(self.images[start : start + count], self.augmentation, self.draws[start : start + count])
        return self.images


def recolour(images: PixelBatch, augmentation: Augmentation, draws: Sequence[Draws]) -> None:
    """Do in place what comes after the crop: jitter, grey, blur, solarize, RandAugment, erase."""
    if augmentation.jitters:
        _jitter(images, augmentation, draws)
    if (grey := _chosen(draws, GREYING, augmentation.grey)).numel():
        images[grey] = enhance.grey(images[grey])
    if (blurred := _chosen(draws, BLURRING, augmentation.blur)).numel():
        low, high = augmentation.blur_deviation
        deviations = [low + (high - low) * draws[place][DEVIATION] for place in blurred.tolist()]
        images[blurred] = blur(images[blurred], deviations)
    if (solarized := _chosen(draws, SOLARIZING, augmentation.solarize)).numel():
        images[solarized] = torch.where(images[solarized] < MIDDLE, images[solarized], 255 - images[solarized])
    if augmentation.layers or augmentation.erase:
        for place, numbers in enumerate(draws):
            images[place] = distort(images[place], augmentation, numbers)


def _jitter(images: PixelBatch, augmentation: Augmentation, draws: Sequence[Draws]) -> None:
    """Change the colours of those images whose draws choose it: one alone, or all at once."""
    some = range(len(draws)) if augmentation.jitter >= 1 else _chosen(draws, JITTERING, augmentation.jitter).tolist()
    if len(draws) == 1 and some:
        images[0] = jitter(images[0], augmentation, draws[0][JITTER])
    elif some:
        chosen = torch.tensor(some)
        changed = images[chosen]
        jitter_all(changed, augmentation, [draws[place][JITTER] for place in some])
        images[chosen] = changed


def _chosen(draws: Sequence[Draws], which: int, probability: float) -> Tensor:
    """Return the places of the images to which something happens."""
    return torch.tensor([place for place, one in enumerate(draws) if probability and one[which] < probability])


def distort(pixels: Pixels, augmentation: Augmentation, draws: Draws) -> Pixels:
    """Do RandAugment, and erase."""
    if augmentation.layers:
        pixels = randaugment(pixels, augmentation.magnitude, draws[OPERATIONS][: 2 * augmentation.layers])
    if draws[ERASING] < augmentation.erase:
        size = (pixels.shape[1], pixels.shape[2])
        box = erase_box(size, augmentation.erase_area, ERASE_ASPECT, draws[ERASE])
        pixels = erase(pixels, box, draws[ERASE][-1]) if box else pixels
    return pixels
