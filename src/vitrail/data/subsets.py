"""Parts of a data set, always the same for the same seed.

Every image has a random number that follows from the seed and its row; a part is the images with the lowest numbers of
each class. So a smaller part is inside of a larger one, as in the paper's study of 9M, 30M and 90M of the 300M images
of JFT (fractions of 0.03, 0.1 and 0.3).
"""

import numpy as np
from jaxtyping import Float

from vitrail.base.errors import ConfigError, InputError
from vitrail.base.seeds import key, keys
from vitrail.data.dataset import Dataset
from vitrail.data.sampler import Counts

ClassWeights = Float[np.ndarray, "class"]


def stratified_split(dataset: Dataset, fraction: float, seed: int) -> tuple[Dataset, Dataset]:
    """Return the rest, and a held-out fraction of each class; a class of two or more images is in both."""
    if not 0 < fraction < 1:
        raise ConfigError(f"a fraction of {fraction} cannot be held out; give one between 0 and 1, such as 0.1.")
    parts = []
    for images in _by_class(dataset, "split", seed):
        count = round(fraction * len(images))
        parts.append(images[: min(max(count, 1), len(images) - 1)])
    chosen = np.zeros(len(dataset), dtype=bool)
    chosen[np.concatenate([np.zeros(0, dtype=np.int64), *parts])] = True
    return dataset.take(np.flatnonzero(~chosen)), dataset.take(np.flatnonzero(chosen))


def few_shot(dataset: Dataset, shots: int, seed: int) -> Dataset:
    """Return N images of each class; fewer shots are among more."""
    if shots < 1:
        raise ConfigError(f"shots is {shots}, but must be at least 1.")
    if few := [
        f"{label} ({count})" for label, count in zip(dataset.labels, dataset.counts, strict=True) if count < shots
    ]:
        listing = ", ".join(few[:5]) + (f" and {len(few) - 5} more" if len(few) > 5 else "")
        raise InputError(
            f"{dataset.where} has classes with fewer than {shots} images: {listing}; ask for at most "
            f"{dataset.counts.min()} of each class."
        )
    return _lowest(dataset, [images[:shots] for images in _by_class(dataset, "few-shot", seed, labelled=True)])


def fraction_of(dataset: Dataset, fraction: float, seed: int) -> Dataset:
    """Return a fraction of each class, at least one image; a smaller fraction is inside of a larger one."""
    if not 0 < fraction <= 1:
        raise ConfigError(f"fraction is {fraction}, but must be above 0 and at most 1.")
    chosen = [images[: max(round(fraction * len(images)), 1)] for images in _by_class(dataset, "fraction", seed)]
    return _lowest(dataset, chosen)


def some_of(dataset: Dataset, count: int, seed: int) -> Dataset:
    """Return `count` images drawn at random, or all where there are fewer; a smaller draw is part of a larger one."""
    if count < 1:
        raise ConfigError(f"the number of images is {count}, but must be at least 1.")
    order = np.argsort(keys(key(seed, "some"), dataset.rows), kind="stable")
    return dataset.take(np.sort(order[:count]))


def class_weights(counts: Counts) -> ClassWeights:
    """Weigh each class by the inverse of its frequency, with a mean of 1 over the classes that have images.

    A class without images has weight 0: it is never seen.
    """
    inverse = np.divide(1.0, counts, out=np.zeros(len(counts)), where=counts > 0)
    return inverse * ((counts > 0).sum() / max(inverse.sum(), np.finfo(float).tiny))


def _by_class(dataset: Dataset, purpose: str, seed: int, *, labelled: bool = False) -> list[np.ndarray]:
    """Return the images of each class, lowest number first; those without a label are a class of their own."""
    order = np.lexsort((keys(key(seed, purpose), dataset.rows), dataset.targets))
    groups = np.split(order, np.flatnonzero(np.diff(dataset.targets[order])) + 1) if len(order) else []
    return [group for group in groups if not labelled or dataset.targets[group[0]] >= 0]


def _lowest(dataset: Dataset, chosen: list[np.ndarray]) -> Dataset:
    """Take images in the order that they have in the data set."""
    return dataset.take(np.sort(np.concatenate([np.zeros(0, dtype=np.int64), *chosen])))
