"""One batch, made from nothing but its number: what it holds is a pure function of the step."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from functools import partial

import numpy as np
import torch
from torch import Tensor

from vitrail.base.errors import ImageError
from vitrail.base.seeds import key, keys, uniform
from vitrail.base.shapes import PixelBatch, Pixels
from vitrail.data.augment.apply import augment_all
from vitrail.data.augment.geometry import rows_needed
from vitrail.data.augment.mixing import Shares, Targets, mix
from vitrail.data.augment.settings import Augmentation
from vitrail.data.dataset import Dataset
from vitrail.data.permutation import Positions
from vitrail.data.pixels.decode import to_channels
from vitrail.data.pixels.upper import RowsNeeded
from vitrail.data.preprocessing import Preprocessing
from vitrail.data.sampler import Order, batch_positions
from vitrail.data.transforms import preprocess

SUBSTITUTES = 20  # a broken image is replaced by the first good one of so many


@dataclass(frozen=True, kw_only=True, eq=False)
class Batch:
    """Images with their classes, as they leave the data room.

    The channels of a pixel lie side by side in memory (`torch.channels_last`), as decoders and resizing make them;
    the conversion to float, on whatever device, reorders them for nothing.
    """

    images: PixelBatch
    targets: Targets
    """The class of each image, or -1."""
    partners: Targets
    """The class of the image that was mixed in; the own class without mixing."""
    shares: Shares
    """The weight of the own class, 1 without mixing; the partner's is the rest."""
    indices: Targets
    """Which images of the data set these are."""
    positions: Targets
    """Where in the stream they stand; in evaluation, the index."""
    broken: tuple[tuple[int, str], ...] = ()
    """Images that could not be read: the index, and why. Training shows another in their place."""

    def to(self, device: torch.device | str) -> "Batch":
        """Move everything to a device, without waiting where the memory is pinned."""
        return self._each(lambda tensor: tensor.to(device, non_blocking=True))

    def pin_memory(self) -> "Batch":
        """Put everything where a GPU can fetch it by itself."""
        return self._each(lambda tensor: tensor.pin_memory())

    def _each(self, change: Callable[[Tensor], Tensor]) -> "Batch":
        tensors = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "broken"}
        return Batch(**{name: change(tensor) for name, tensor in tensors.items()}, broken=self.broken)


@dataclass(frozen=True, kw_only=True, eq=False)
class TrainingSteps:
    """Every training step of one rank, by number."""

    dataset: Dataset
    order: Order
    augmentation: Augmentation
    image_size: tuple[int, int]
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
        draws = uniform(keys(key(self.seed, "augment"), epochs, indices), self.augmentation.draws).tolist()
        broken: list[tuple[int, str]] = []
        pictures = self._pictures(epochs, indices, draws, broken)
        try:
            images = augment_all(pictures, self.augmentation, self.image_size, self.channels, draws)
        except ImageError as error:
            return error
        targets = torch.from_numpy(self.dataset.targets[indices].astype(np.int64))
        partners, shares = targets, torch.ones(len(positions))
        if self.augmentation.mixes:
            partners, shares = mix(images, targets, positions, self.augmentation, self.seed)
        return Batch(
            images=images,
            targets=targets,
            partners=partners,
            shares=shares,
            indices=torch.from_numpy(indices),
            positions=torch.from_numpy(positions),
            broken=tuple(broken),
        )

    def _pictures(
        self, epochs: Positions, indices: Positions, draws: list[list[float]], broken: list[tuple[int, str]]
    ) -> Iterator[Pixels]:
        """Read the images one after the other; `indices` come to name those that were read."""
        for place, (epoch, index) in enumerate(zip(epochs.tolist(), indices.tolist(), strict=True)):
            needed = partial(rows_needed, augmentation=self.augmentation, draws=draws[place])
            indices[place], pixels = self._readable(index, epoch, needed, broken)
            yield pixels

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
        targets = torch.from_numpy(self.dataset.targets[good].astype(np.int64))
        return Batch(
            images=images[: len(good)],
            targets=targets,
            partners=targets,
            shares=torch.ones(len(good)),
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
