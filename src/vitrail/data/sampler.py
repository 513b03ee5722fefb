"""Which image comes when: an endless stream for training, a shard for evaluation.

Training is one stream of positions, and step s of batch size B takes the positions from s * B on. What is at a
position is a pure function of it, so that a run can be entered anywhere, by any number of processes.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

from vitrail.base.errors import ConfigError, InputError
from vitrail.base.seeds import key, keys
from vitrail.data.dataset import Dataset, Rows
from vitrail.data.permutation import Positions, permute

Counts = Int[np.ndarray, "class"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Classes:
    """The images of each class that has any, for balanced sampling."""

    members: Rows
    """Images, class after class."""
    starts: Counts
    """Where each class begins in `members`."""
    sizes: Counts
    """How many images each class has."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Order:
    """The order of training: epoch after epoch, each a new permutation; or every class equally often."""

    length: int
    """Images of an epoch."""
    seed: int
    """The name of the permutations."""
    classes: Classes | None = None
    """With these, each class comes once in every block of as many positions as there are classes."""

    def indices(self, positions: Positions) -> tuple[Positions, Positions]:
        """Return, for each position of the stream, which time round it is and the image.

        Balanced, the rounds are those of the class: rare images come round more often.
        """
        if self.classes is None:
            epochs, places = np.divmod(positions, self.length)
            order = keys(key(self.seed, "order"), epochs)
            return epochs, permute(places, np.full_like(places, self.length), order)
        many = len(self.classes.sizes)
        blocks, places = np.divmod(positions, many)
        chosen = permute(places, np.full_like(places, many), keys(key(self.seed, "classes"), blocks))
        sizes = self.classes.sizes[chosen]
        epochs, places = np.divmod(blocks, sizes)
        within = permute(places, sizes, keys(key(self.seed, "order"), chosen, epochs))
        return epochs, self.classes.members[self.classes.starts[chosen] + within]


def training_order(dataset: Dataset, *, seed: int, balanced: bool = False) -> Order:
    """Make the order of a data set."""
    if not len(dataset):
        raise InputError(f"{dataset.where} has no images to train on.")
    return Order(length=len(dataset), seed=seed, classes=_classes(dataset) if balanced else None)


def batch_positions(step: int, *, batch: int, rank: int = 0, world: int = 1) -> Positions:
    """Return the stream positions of one rank's slice of a global batch."""
    if batch % world:
        raise ConfigError(
            f"a batch of {batch} cannot be shared by {world} processes; choose a multiple, such as "
            f"{(batch // world + 1) * world}."
        )
    share = batch // world
    start = step * batch + rank * share
    return np.arange(start, start + share, dtype=np.int64)


def evaluation_shard(length: int, *, rank: int = 0, world: int = 1) -> range:
    """Return the images of one rank: every image belongs to exactly one, and shards differ by at most one image."""
    return range(length * rank // world, length * (rank + 1) // world)


def _classes(dataset: Dataset) -> Classes:
    if len(dataset.targets) and dataset.targets.min() < 0:
        raise InputError(f"{dataset.where} has images without a label; balanced sampling needs one for every image.")
    members = np.argsort(dataset.targets, kind="stable")
    present = dataset.counts[dataset.counts > 0]
    return Classes(members=members, starts=np.cumsum(present) - present, sizes=present)
