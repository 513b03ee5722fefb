"""One batch, a pure function of its step's number."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch

from vitrail.base.errors import ImageError
from vitrail.base.seeds import key, keys, uniform
from vitrail.base.shapes import Pixels
from vitrail.data.augment.apply import Canvas
from vitrail.data.augment.geometry import rows_needed
from vitrail.data.augment.mixing import mix
from vitrail.data.batch import Batch, View, class_targets
from vitrail.data.dataset import Dataset
from vitrail.data.permutation import Positions
from vitrail.data.pixels.decode import to_channels
from vitrail.data.pixels.upper import RowsNeeded
from vitrail.data.preprocessing import Preprocessing
from vitrail.data.sampler import Order, batch_positions
from vitrail.data.transforms import preprocess

SUBSTITUTES = 20  # a broken image is replaced by the first good one of these


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
        """Read, augment and mix the images of one step; errors are returned as values."""
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
        """Read the images one after the other; `indices` is changed to those that were read."""
        for place, (epoch, index) in enumerate(zip(epochs.tolist(), indices.tolist(), strict=True)):
            needed = partial(self._rows_needed, draws=[numbers[place] for numbers in draws])
            indices[place], pixels = self._readable(index, epoch, needed, broken)
            yield pixels

    def _rows_needed(self, size: tuple[int, int], draws: list[list[float]]) -> int:
        """Count the rows of an image, from the top, that any view reads."""
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
