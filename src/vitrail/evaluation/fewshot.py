"""Few-shot accuracy: draw a few images of each class, fit a classifier on frozen features, measure it on test images.

Every draw is a function of the seed, and a smaller draw is part of a larger one: only the images of the largest draws
go through the model, once for all shots and methods.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, stdev

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from vitrail.base.errors import InputError
from vitrail.base.numbers import check_whole
from vitrail.base.progress import Progress, silent
from vitrail.data.budget import Budget
from vitrail.data.dataset import Dataset, Rows
from vitrail.data.subsets import few_shot
from vitrail.evaluation.features import Features, Matrix

Shots = int | None
"""Images of each class; None stands for all that there are."""
Method = Callable[..., dict[str, Rows]]
"""Maps training features, their targets, the number of classes and test features to answers by name."""
Extract = Callable[..., Features]
"""An `Extractor`, or any function with its signature."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Draw:
    """The training images of one measurement."""

    shots: Shots
    seed: int
    images: Dataset


@dataclass(frozen=True, kw_only=True, eq=False)
class LabelledFeatures:
    """Images with their classes and features."""

    rows: Rows
    """Their rows in the data."""
    targets: Rows
    values: Matrix

    def take(self, images: Dataset) -> "LabelledFeatures":
        """Return the features of a data set's images, in its order."""
        if np.array_equal(images.rows, self.rows):
            return self
        order = np.argsort(self.rows, kind="stable")
        places = order[np.searchsorted(self.rows, images.rows, sorter=order)]
        return LabelledFeatures(rows=images.rows, targets=images.targets, values=self.values[torch.from_numpy(places)])


@dataclass(frozen=True, kw_only=True)
class Score:
    """The accuracy of one method with one number of shots."""

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
    """Refuse, before any image is read, shots that cannot be drawn or measured."""
    check_whole("seeds", seeds, most=10_000)
    for split in (train, test):
        if not split.labels or not bool((split.targets >= 0).any()):
            raise InputError(
                f"the {split.split} split of {split.where} has no labels to compare answers with; put "
                "each class into a folder of its own, or give a CSV with path and label."
            )
    if len(train.labels) < 2:
        raise InputError(f"{train.where} has only one class, {train.labels[0]!r}; a classifier needs at least two.")
    for number in shots:
        if number is not None:
            few_shot(train, number, 0)


def draw(train: Dataset, shots: Sequence[Shots], seeds: int) -> list[Draw]:
    """Draw for every number of shots and every seed from 0; `all` needs only one draw."""
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


def extract_drawn(
    train: Dataset, shots: Sequence[Shots], seeds: int, extract: Extract, *, skip_broken: Budget | None = None
) -> tuple[list[Draw], LabelledFeatures]:
    """Draw, and compute the features of every image that was drawn; broken images are replaced by new draws."""
    readable, broken = train, 0
    features = _empty(train)
    while True:
        draws = draw(readable, shots, seeds)
        rows = np.concatenate([each.images.rows for each in draws])
        is_new = np.isin(readable.rows, rows) & ~np.isin(readable.rows, features.rows)
        if not is_new.any():
            return draws, features
        images = readable.take(np.flatnonzero(is_new))
        budget = None if skip_broken is None else Budget(count=max(skip_broken.allowed(len(train)) - broken, 0))
        batch = extract(images, skip_broken=budget)
        places = np.flatnonzero(batch.read)
        broken += len(images) - len(places)
        features = _joined(
            features,
            LabelledFeatures(rows=images.rows[places], targets=images.targets[places], values=_rows(batch, places)),
        )
        readable = readable.take(np.flatnonzero(~np.isin(readable.rows, images.rows[~batch.read])))


def extract_labelled(test: Dataset, extract: Extract, *, skip_broken: Budget | None = None) -> LabelledFeatures:
    """Compute the features of every image that has a class and can be read."""
    images = labelled(test)
    features = extract(images, skip_broken=skip_broken)
    places = np.flatnonzero(features.read)
    return LabelledFeatures(rows=images.rows[places], targets=images.targets[places], values=_rows(features, places))


def measure(
    train: LabelledFeatures,
    draws: Sequence[Draw],
    test: LabelledFeatures,
    num_classes: int,
    methods: Mapping[str, Method],
    *,
    progress: Progress = silent,
) -> list[Score]:
    """Fit every method on every draw, and return its accuracies on the test images, by shots."""
    accuracies: dict[tuple[Shots, str], list[float]] = {}
    images: dict[Shots, int] = {}
    tasks = [(draw, method) for draw in draws for method in methods.values()]
    for draw, method in progress(tasks, total=len(tasks), title="fitting"):
        examples = train.take(draw.images)
        images[draw.shots] = len(examples.rows)
        for name, answers in method(examples.values, examples.targets, num_classes, test.values).items():
            right = float((answers == test.targets).mean())
            accuracies.setdefault((draw.shots, name), []).append(right)
    return [
        Score(shots=shots, method=name, images=images[shots], accuracies=tuple(values))
        for (shots, name), values in accuracies.items()
    ]


def _empty(dataset: Dataset) -> LabelledFeatures:
    return LabelledFeatures(rows=dataset.rows[:0], targets=dataset.targets[:0], values=torch.zeros(0, 0))


def _joined(one: LabelledFeatures, other: LabelledFeatures) -> LabelledFeatures:
    if not len(one.rows):
        return other
    return LabelledFeatures(
        rows=np.concatenate([one.rows, other.rows]),
        targets=np.concatenate([one.targets, other.targets]),
        values=torch.cat([one.values, other.values]),
    )


def _rows(features: Features, places: Rows) -> Float[Tensor, "place representation"]:
    """Return the features at some places, without a copy when these are all."""
    whole = len(places) == len(features.read)
    return features.values if whole else features.values[torch.from_numpy(places)]
