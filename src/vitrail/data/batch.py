"""One batch, made from nothing but its number: what it holds is a pure function of the step."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import torch
from jaxtyping import UInt8
from torch import Tensor

from vitrail.base.errors import ImageError
from vitrail.base.seeds import key, keys, uniform
from vitrail.base.shapes import PixelBatch, Pixels
from vitrail.data.augment.apply import Canvas
from vitrail.data.augment.geometry import rows_needed
from vitrail.data.augment.mixing import Targets as Indices
from vitrail.data.augment.mixing import mix
from vitrail.data.augment.settings import Augmentation
from vitrail.data.dataset import Dataset
from vitrail.data.permutation import Positions
from vitrail.data.pixels.decode import to_channels
from vitrail.data.pixels.upper import RowsNeeded
from vitrail.data.preprocessing import Preprocessing
from vitrail.data.sampler import Order, batch_positions
from vitrail.data.transforms import preprocess

Seen = UInt8[Tensor, "batch channel _ _"]
"""Images of one size, whatever the sizes of other views are."""
SUBSTITUTES = 20  # a broken image is replaced by the first good one of so many


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

    views: tuple[Seen, ...]
    """One view or several of the same images, each of a size of its own."""
    targets: Mapping[str, Tensor]
    """What is to be learned of each image, by name: `class` is its class, or -1; `partner` the class of the image that
    was mixed in, and `share` the weight of its own class, 1 without mixing."""
    indices: Indices
    """Which images of the data set these are."""
    positions: Indices
    """Where in the stream they stand; in evaluation, the index."""
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
        return [
            self._each(lambda tensor, start=start: tensor[start : start + size])  # type: ignore[misc]
            for start in range(0, len(self), size)
        ]

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


@dataclass(frozen=True, kw_only=True, eq=False)
class TrainingSteps:
    """Every training step of one rank, by number."""

    dataset: Dataset
    order: Order
    views: tuple[View, ...]
    """The first is mixed, if it is to be, and its draws do not depend on how many views follow it."""
    channels: int
    batch: int
    seed: int
    rank: int
    world: int
    skips: bool

    def __getitem__(self, step: int) -> Batch | ImageError:
        """Read, augment and mix the images of one step; what is wrong with them comes back as a value."""
        positions = batch_positions(step, batch=self.batch, rank=self.rank, world=self.world)
        epochs, indices = self.order.indices(positions)
        draws = [self._draws(number, epochs, indices) for number in range(len(self.views))]
        canvases = [
            Canvas(view.augmentation, view.image_size, self.channels, numbers)
            for view, numbers in zip(self.views, draws, strict=True)
        ]
        broken: list[tuple[int, str]] = []
        try:
            for place, pixels in enumerate(self._pictures(epochs, indices, draws, broken)):
                for canvas in canvases:
                    canvas.put(place, pixels)
        except ImageError as error:
            return error
        images, *others = (canvas.finished() for canvas in canvases)
        targets = class_targets(torch.from_numpy(self.dataset.targets[indices].astype(np.int64)))
        first = self.views[0].augmentation
        if first.mixes:
            targets["partner"], targets["share"] = mix(images, targets["class"], positions, first, self.seed)
        return Batch(
            views=(images, *others),
            targets=targets,
            indices=torch.from_numpy(indices),
            positions=torch.from_numpy(positions),
            broken=tuple(broken),
        )

    def _draws(self, view: int, epochs: Positions, indices: Positions) -> list[list[float]]:
        """Return the numbers that decide what happens to each image in one view."""
        root = key(self.seed, "augment", view) if view else key(self.seed, "augment")
        return uniform(keys(root, epochs, indices), self.views[view].augmentation.draws).tolist()

    def _pictures(
        self, epochs: Positions, indices: Positions, draws: list[list[list[float]]], broken: list[tuple[int, str]]
    ) -> Iterator[Pixels]:
        """Read the images one after the other; `indices` come to name those that were read."""
        for place, (epoch, index) in enumerate(zip(epochs.tolist(), indices.tolist(), strict=True)):
            needed = partial(self._rows_needed, draws=[numbers[place] for numbers in draws])
            indices[place], pixels = self._readable(index, epoch, needed, broken)
            yield pixels

    def _rows_needed(self, size: tuple[int, int], draws: list[list[float]]) -> int:
        """Count the rows of an image, from the top, that some view looks at."""
        return max(
            rows_needed(size, view.augmentation, numbers) for view, numbers in zip(self.views, draws, strict=True)
        )

    def _readable(
        self, index: int, epoch: int, needed: RowsNeeded, broken: list[tuple[int, str]]
    ) -> tuple[int, Pixels]:
        """Return an image, or where it is broken and may be skipped, the first good one of a keyed probe."""
        try:
            return index, _read(self.dataset, index, self.channels, needed)
        except ImageError as error:
            if not self.skips:
                raise
            broken.append((index, str(error)))
        probe = np.arange(SUBSTITUTES)
        tried = keys(key(self.seed, "substitute"), np.full_like(probe, epoch), np.full_like(probe, index), probe)
        for other in (tried % np.uint64(len(self.dataset))).tolist():
            try:
                return other, _read(self.dataset, other, self.channels, needed)
            except ImageError as error:
                broken.append((other, str(error)))
        raise ImageError(f"{broken[-1][1]} {SUBSTITUTES} other images tried in its place are broken too.")


@dataclass(frozen=True, kw_only=True, eq=False)
class EvaluationSteps:
    """Every batch of one rank's shard, by number."""

    dataset: Dataset
    preprocessing: Preprocessing
    shard: range
    batch: int
    skips: bool

    def __len__(self) -> int:
        """Count the batches."""
        return -(-len(self.shard) // self.batch)

    def __getitem__(self, number: int) -> Batch | ImageError:
        """Read and preprocess the images of one batch; a broken one that may be skipped is left out."""
        chosen = self.shard[number * self.batch : (number + 1) * self.batch]
        shape = (len(chosen), *self.preprocessing.image_size, len(self.preprocessing.mean))
        images = torch.empty(shape, dtype=torch.uint8).permute(0, 3, 1, 2)
        good: list[int] = []
        broken: list[tuple[int, str]] = []
        for index in chosen:
            try:
                pixels = _read(self.dataset, index, images.shape[1])
            except ImageError as error:
                if not self.skips:
                    return error
                broken.append((index, str(error)))
                continue
            images[len(good)] = preprocess(pixels, self.preprocessing)
            good.append(index)
        indices = torch.tensor(good, dtype=torch.int64)
        return Batch(
            views=(images[: len(good)],),
            targets=class_targets(torch.from_numpy(self.dataset.targets[good].astype(np.int64))),
            indices=indices,
            positions=indices,
            broken=tuple(broken),
        )


def _read(dataset: Dataset, index: int, channels: int, needed: RowsNeeded | None = None) -> Pixels:
    """Return an image with the channels that the model has."""
    pixels = dataset.image(index, needed=needed)
    if pixels.shape[0] == channels:
        return pixels
    try:
        return to_channels(pixels, channels)
    except ImageError as error:
        raise ImageError(f"{dataset.name(index)}: {error}") from None
