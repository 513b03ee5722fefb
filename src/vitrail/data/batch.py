"""One batch: images in one view or several, and what is to be learned of them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

import torch
from jaxtyping import UInt8
from torch import Tensor

from vitrail.base.shapes import PixelBatch
from vitrail.data.augment.mixing import Targets as Indices
from vitrail.data.augment.settings import Augmentation

ViewPixels = UInt8[Tensor, "batch channel _ _"]
"""Images of one size, whatever the sizes of other views are."""


@dataclass(frozen=True, kw_only=True)
class View:
    """One more view of every image: how it is augmented, and its size."""

    augmentation: Augmentation = field(default_factory=Augmentation)
    """Random changes, with draws of this view's own; views beside the first are never mixed."""
    image_size: tuple[int, int] = (96, 96)
    """Height and width of the view, in pixels."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Batch:
    """Images with what is to be learned of them, as they leave the data room.

    The channels of a pixel lie side by side in memory (`torch.channels_last`), as decoders and resizing make them;
    the conversion to float, on whatever device, reorders them for nothing.
    """

    views: tuple[ViewPixels, ...]
    """One view or several of the same images, each of a size of its own."""
    targets: Mapping[str, Tensor]
    """The targets of each image, by name: `class` is its class, or -1; `partner` the class of the image that
    was mixed in, and `share` the weight of its own class, 1 without mixing."""
    indices: Indices
    """Which images of the data set these are."""
    positions: Indices
    """Their positions in the stream; in evaluation, the index."""
    broken: tuple[tuple[int, str], ...] = ()
    """Images that could not be read: the index, and why. Training shows another in their place."""

    def __len__(self) -> int:
        """Count the images."""
        return len(self.indices)

    @property
    def images(self) -> PixelBatch:
        """The first view, which is what a classifier sees."""
        return self.views[0]

    @property
    def classes(self) -> Indices:
        """The class of each image, or -1."""
        return self.targets["class"]

    def to(self, device: torch.device | str) -> "Batch":
        """Move everything to a device, without waiting where the memory is pinned."""
        return self._each(lambda tensor: tensor.to(device, non_blocking=True))

    def pin_memory(self) -> "Batch":
        """Put everything where a GPU can fetch it by itself."""
        return self._each(lambda tensor: tensor.pin_memory())

    def split(self, size: int) -> "list[Batch]":
        """Cut the batch into pieces of at most `size` images, with all their views and targets."""
        return [self._part(start, start + size) for start in range(0, len(self), size)]

    def divide(self, count: int) -> "list[Batch]":
        """Cut the batch into `count` pieces that differ by one image at most, the larger ones first."""
        size, larger = divmod(len(self), count)
        starts = [number * size + min(number, larger) for number in range(count + 1)]
        return [self._part(start, stop) for start, stop in pairwise(starts)]

    def _part(self, start: int, stop: int) -> "Batch":
        return self._each(lambda tensor: tensor[start:stop])

    def tensors(self) -> dict[str, Tensor]:
        """Name everything, to be stored."""
        views = {f"view.{number}": view for number, view in enumerate(self.views)}
        targets = {f"target.{name}": tensor for name, tensor in self.targets.items()}
        return views | targets | {"indices": self.indices, "positions": self.positions}

    def _each(self, change: Callable[[Tensor], Tensor]) -> "Batch":
        return Batch(
            views=tuple(change(view) for view in self.views),
            targets={name: change(tensor) for name, tensor in self.targets.items()},
            indices=change(self.indices),
            positions=change(self.positions),
            broken=self.broken,
        )


def class_targets(classes: Indices) -> dict[str, Tensor]:
    """Return the targets of images that are not mixed."""
    return {"class": classes, "partner": classes, "share": torch.ones(len(classes))}
