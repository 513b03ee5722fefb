"""Few-shot accuracy: draw a few images of each class, fit a classifier on frozen features, measure it on test images.

Every draw is a function of the seed, and fewer shots are among more; so only the images of the largest draws have to go
through the model, once for all shots and methods.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, stdev

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from vitrail.base.errors import ConfigError, InputError
from vitrail.base.progress import Progress, silent
from vitrail.data.budget import Budget
from vitrail.data.dataset import Dataset, Rows
from vitrail.data.subsets import few_shot
from vitrail.evaluation.features import Features, Matrix

Shots = int | None
"""Images of each class; None stands for all that there are."""
Method = Callable[..., dict[str, Rows]]
"""From features, targets, the number of classes and the features that are asked about, to answers by name."""
Extract = Callable[..., Features]
"""An `Extractor`, or what works like one."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Draw:
    """The training images of one measurement."""

    shots: Shots
    seed: int
    images: Dataset


@dataclass(frozen=True, kw_only=True, eq=False)
class Known:
    """Labelled images whose features are there."""

    rows: Rows
    """Which pictures they are."""
    targets: Rows
    values: Matrix

    def take(self, images: Dataset) -> "Known":
        """Return some of them, in the order of a data set."""
        if np.array_equal(images.rows, self.rows):
            return self
        order = np.argsort(self.rows, kind="stable")
        places = order[np.searchsorted(self.rows, images.rows, sorter=order)]
        return Known(rows=images.rows, targets=images.targets, values=self.values[torch.from_numpy(places)])


@dataclass(frozen=True, kw_only=True)
class Score:
    """How good one method is with so many shots."""

    shots: Shots
    method: str
    images: int
    """Training images of one draw."""
    accuracies: tuple[float, ...]
    """One for each draw, in the order of the seeds."""

    @property
    def mean(self) -> float:
        """The mean over the draws."""
        return mean(self.accuracies)

    @property
    def spread(self) -> float | None:
        """The standard deviation over the draws (with n - 1); None for a single one."""
        return stdev(self.accuracies) if len(self.accuracies) > 1 else None


def check_shots(train: Dataset, test: Dataset, shots: Sequence[Shots], seeds: int) -> None:
    """Refuse, before any image is read, what cannot be drawn or measured."""
    if seeds < 1:
        raise ConfigError(f"{seeds} seeds are none; give 1 or more.")
    for split in (train, test):
        if not split.labels or not bool((split.targets >= 0).any()):
            raise InputError(
                f"the {split.split} split of {split.where} has no labels, without which nothing can be measured; put "
                "each class into a folder of its own, or give a CSV with path and label."
            )
    if len(train.labels) < 2:
        raise InputError(f"{train.where} has one class only, {train.labels[0]!r}; a classifier needs at least two.")
    for number in shots:
        if number is not None:
            few_shot(train, number, 0)


def draw(train: Dataset, shots: Sequence[Shots], seeds: int) -> list[Draw]:
    """Draw for every number of shots and every seed from 0 on; all images are drawn only once."""
    draws = []
    for number in shots:
        if number is None:
            draws.append(Draw(shots=None, seed=0, images=labelled(train)))
        else:
            draws += [Draw(shots=number, seed=seed, images=few_shot(train, number, seed)) for seed in range(seeds)]
    return draws


def labelled(dataset: Dataset) -> Dataset:
    """Return the images that have a class."""
    return dataset.take(np.flatnonzero(dataset.targets >= 0))


def know_drawn(
    train: Dataset, shots: Sequence[Shots], seeds: int, extract: Extract, *, skip_broken: Budget | None = None
) -> tuple[list[Draw], Known]:
    """Draw, and compute the features of all that was drawn; others are drawn in place of images that are broken."""
    good, broken = train, 0
    known = _nothing(train)
    while True:
        draws = draw(good, shots, seeds)
        drawn = np.concatenate([drawn.images.rows for drawn in draws])
        needed = np.isin(good.rows, drawn) & ~np.isin(good.rows, known.rows)
        if not needed.any():
            return draws, known
        asked = good.take(np.flatnonzero(needed))
        left = None if skip_broken is None else Budget(count=max(skip_broken.allowed(len(train)) - broken, 0))
        found = extract(asked, skip_broken=left)
        read = np.flatnonzero(found.read)
        broken += len(asked) - len(read)
        known = _joined(known, Known(rows=asked.rows[read], targets=asked.targets[read], values=_rows(found, read)))
        good = good.take(np.flatnonzero(~np.isin(good.rows, asked.rows[~found.read])))


def know_all(test: Dataset, extract: Extract, *, skip_broken: Budget | None = None) -> Known:
    """Compute the features of every image that has a class and can be read."""
    asked = labelled(test)
    found = extract(asked, skip_broken=skip_broken)
    read = np.flatnonzero(found.read)
    return Known(rows=asked.rows[read], targets=asked.targets[read], values=_rows(found, read))


def measure(
    train: Known,
    draws: Sequence[Draw],
    test: Known,
    num_classes: int,
    methods: Mapping[str, Method],
    *,
    progress: Progress = silent,
) -> list[Score]:
    """Fit every method on every draw, and return its accuracy on the test images, shots after shots."""
    accuracies: dict[tuple[Shots, str], list[float]] = {}
    images: dict[Shots, int] = {}
    tasks = [(drawn, method) for drawn in draws for method in methods.values()]
    for drawn, method in progress(tasks, total=len(tasks), title="fitting"):
        known = train.take(drawn.images)
        images[drawn.shots] = len(known.rows)
        for name, answers in method(known.values, known.targets, num_classes, test.values).items():
            right = float((answers == test.targets).mean())
            accuracies.setdefault((drawn.shots, name), []).append(right)
    return [
        Score(shots=shots, method=name, images=images[shots], accuracies=tuple(found))
        for (shots, name), found in accuracies.items()
    ]


def _nothing(dataset: Dataset) -> Known:
    return Known(rows=dataset.rows[:0], targets=dataset.targets[:0], values=torch.zeros(0, 0))


def _joined(one: Known, other: Known) -> Known:
    if not len(one.rows):
        return other
    return Known(
        rows=np.concatenate([one.rows, other.rows]),
        targets=np.concatenate([one.targets, other.targets]),
        values=torch.cat([one.values, other.values]),
    )


def _rows(features: Features, read: Rows) -> Float[Tensor, "read representation"]:
    """Return the features of what could be read, without a copy where that is everything."""
    whole = len(read) == len(features.read)
    return features.values if whole else features.values[torch.from_numpy(read)]
