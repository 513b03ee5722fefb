"""Batches: the stream of training from any step on, and each rank's shard for evaluation, read by any workers.

What a batch holds is a pure function of its step number, so a worker is handed a number and nothing else: there is no
state to save, nothing to replay, and no seed that depends on who works.
"""

import signal
import sys
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Protocol

import numpy as np
import torch
from jaxtyping import Int64
from torch import Tensor
from torch.utils.data import DataLoader

from vitrail.base.errors import ConfigError, ImageError, InputError, VitrailError
from vitrail.base.seeds import key, keys, uniform
from vitrail.base.shapes import PixelBatch, Pixels
from vitrail.data.augment import Augmentation, augment_all
from vitrail.data.dataset import Dataset
from vitrail.data.decode import to_channels
from vitrail.data.mixing import Shares, Targets, mix
from vitrail.data.permutation import Positions
from vitrail.data.preprocessing import Preprocessing
from vitrail.data.sampler import Order, batch_positions, evaluation_shard, training_order
from vitrail.data.transforms import preprocess

SUBSTITUTES = 20  # a broken image is replaced by the first good one of so many


class Allowance(Protocol):
    """How many broken images may be skipped (a `Budget` is one)."""

    def spend(self, skipped: Sequence[tuple[str, str]], total: int) -> None:
        """Raise an `InputError` when more is skipped than allowed."""


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
    indices: Int64[Tensor, "batch"]
    """Which images of the data set these are."""
    positions: Int64[Tensor, "batch"]
    """Where in the stream they stand; in evaluation, the index."""
    broken: tuple[tuple[int, str], ...] = ()
    """Images that could not be read: the index, and why. Training shows another in their place."""

    def to(self, device: torch.device | str) -> "Batch":
        """Move everything to a device, without waiting where the memory is pinned."""
        return self._each(lambda tensor: tensor.to(device, non_blocking=True))

    def pin_memory(self) -> "Batch":
        """Put everything where a GPU can fetch it by itself."""
        return self._each(lambda tensor: tensor.pin_memory())

    def _each(self, change: "Change") -> "Batch":
        tensors = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "broken"}
        return Batch(**{name: change(tensor) for name, tensor in tensors.items()}, broken=self.broken)


class Change(Protocol):
    """A function of a tensor."""

    def __call__(self, tensor: Tensor, /) -> Tensor: ...


class Step(Protocol):
    """What makes the batch of a number."""

    def __getitem__(self, number: int) -> Batch | VitrailError: ...


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

    def __getitem__(self, step: int) -> Batch | VitrailError:
        """Read, augment and mix the images of one step; what is wrong with them comes back as a value."""
        positions = batch_positions(step, batch=self.batch, rank=self.rank, world=self.world)
        epochs, indices = self.order.indices(positions)
        draws = uniform(keys(key(self.seed, "augment"), epochs, indices), self.augmentation.draws).tolist()
        broken: list[tuple[int, str]] = []
        pictures = self._pictures(epochs, indices, broken)
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

    def _pictures(self, epochs: Positions, indices: Positions, broken: list[tuple[int, str]]) -> Iterator[Pixels]:
        """Read the images one after the other; `indices` come to name those that were read."""
        for place, (epoch, index) in enumerate(zip(epochs.tolist(), indices.tolist(), strict=True)):
            indices[place], pixels = self._readable(index, epoch, broken)
            yield pixels

    def _readable(self, index: int, epoch: int, broken: list[tuple[int, str]]) -> tuple[int, Pixels]:
        """Return an image, or where it is broken and may be skipped, the first good one of a keyed probe."""
        try:
            return index, _read(self.dataset, index, self.channels)
        except ImageError as error:
            if not self.skips:
                raise
            broken.append((index, str(error)))
        probe = np.arange(SUBSTITUTES)
        tried = keys(key(self.seed, "substitute"), np.full_like(probe, epoch), np.full_like(probe, index), probe)
        for other in (tried % np.uint64(len(self.dataset))).tolist():
            try:
                return other, _read(self.dataset, other, self.channels)
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

    def __getitem__(self, number: int) -> Batch | VitrailError:
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
        targets = torch.from_numpy(self.dataset.targets[indices.numpy()].astype(np.int64))
        return Batch(
            images=images[: len(good)],
            targets=targets,
            partners=targets,
            shares=torch.ones(len(good)),
            indices=indices,
            positions=indices,
            broken=tuple(broken),
        )


def training_batches(
    dataset: Dataset,
    *,
    image_size: tuple[int, int],
    augmentation: Augmentation,
    batch: int,
    seed: int,
    stop_step: int,
    start_step: int = 0,
    rank: int = 0,
    world: int = 1,
    workers: int = 0,
    channels: int | None = None,
    skip_broken: Allowance | None = None,
    balanced: bool = False,
) -> Iterator[Batch]:
    """Yield one rank's slices of the global batches from `start_step` to before `stop_step`.

    Without `skip_broken` the first image that cannot be read raises its error; with it, another takes its place until
    the allowance is used up.
    """
    batch_positions(0, batch=batch, rank=rank, world=world)  # refuses what cannot be shared
    if augmentation.mixes and world > 1 and batch // world % 2:
        raise ConfigError(
            f"{world} processes have {batch // world} images each of a batch of {batch}, but mixup and cutmix need pairs; "
            f"choose a batch that is a multiple of {2 * world}."
        )
    steps = TrainingSteps(
        dataset=dataset,
        order=training_order(dataset, seed=seed, balanced=balanced),
        augmentation=augmentation,
        image_size=image_size,
        channels=channels or dataset.channels,
        batch=batch,
        seed=seed,
        rank=rank,
        world=world,
        skips=skip_broken is not None,
    )
    return _batches(steps, range(start_step, stop_step), dataset, workers, skip_broken)


def evaluation_batches(
    dataset: Dataset,
    preprocessing: Preprocessing,
    *,
    batch: int,
    rank: int = 0,
    world: int = 1,
    workers: int = 0,
    skip_broken: Allowance | None = None,
) -> Iterator[Batch]:
    """Yield every image of one rank's shard once, in order; the last batch may be smaller.

    With `skip_broken` an image that cannot be read is left out, so that a batch may be smaller, or even empty.
    """
    steps = EvaluationSteps(
        dataset=dataset,
        preprocessing=preprocessing,
        shard=evaluation_shard(len(dataset), rank=rank, world=world),
        batch=batch,
        skips=skip_broken is not None,
    )
    return _batches(steps, range(len(steps)), dataset, workers, skip_broken)


def _batches(
    steps: Step, numbers: range, dataset: Dataset, workers: int, allowance: Allowance | None
) -> Iterator[Batch]:
    """Raise the errors that come back as values, and keep count of the broken images."""
    skipped: dict[int, str] = {}
    for made in _made(steps, numbers, workers):
        if isinstance(made, VitrailError):
            raise made
        if allowance is not None and any(index not in skipped for index, _ in made.broken):
            skipped |= dict(made.broken)
            allowance.spend([(dataset.name(index), why) for index, why in skipped.items()], len(dataset))
        yield made


def _made(steps: Step, numbers: range, workers: int) -> Iterator[Batch | VitrailError]:
    """Make the steps here, or in other processes, in order."""
    pins = torch.cuda.is_available()
    if not workers:
        for number in numbers:
            made = steps[number]
            yield made.pin_memory() if pins and isinstance(made, Batch) else made
        return
    loader: DataLoader[Batch | VitrailError] = DataLoader(
        steps,  # type: ignore[arg-type]  # anything with __getitem__ is a map-style data set
        batch_size=None,
        sampler=numbers,
        num_workers=workers,
        collate_fn=_as_it_is,
        pin_memory=pins,
        worker_init_fn=_start_worker,
        # Forked workers share the arrays of the index and of the images with this process; spawned ones would copy
        # them. Forking is safe here although torch has threads: a worker runs one thread, and never touches CUDA.
        multiprocessing_context="fork" if sys.platform == "linux" else None,
        generator=torch.Generator(),  # the loader draws a seed that nothing uses; not from the model's stream
    )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*multi-threaded, use of fork", category=DeprecationWarning)
        iterator = iter(loader)
    try:
        yield from iterator
    except RuntimeError as error:
        if "DataLoader worker" not in str(error):
            raise
        raise InputError(
            f"one of {workers} processes that read images was ended from outside, most often for want of memory; "
            f"use fewer workers or a smaller batch."
        ) from error


def _start_worker(_: int) -> None:
    """Leave signals to the main process, which saves and then ends its workers.

    Ctrl-C, and SIGTERM from a scheduler, reach the whole group: a worker that went at once would take the run along
    before it is saved. A second SIGTERM ends it.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: signal.signal(signal.SIGTERM, signal.SIG_DFL) and None)


def _as_it_is(made: Batch | VitrailError) -> Batch | VitrailError:
    return made


def _read(dataset: Dataset, index: int, channels: int) -> Pixels:
    """Return an image with the channels that the model has."""
    pixels = dataset.image(index)
    if pixels.shape[0] == channels:
        return pixels
    try:
        return to_channels(pixels, channels)
    except ImageError as error:
        raise ImageError(f"{dataset.name(index)}: {error}") from None
