"""The settings of a run's data: what was requested, and what was there when it was opened."""

from dataclasses import dataclass
from typing import Literal

Role = Literal["train", "dev", "transfer"]


@dataclass(frozen=True, kw_only=True)
class DataConfig:
    """The data to learn from, as requested."""

    where: str = "sample"
    """A folder, manifest, shards, arrays: whatever `vitrail data` opens."""
    others: tuple[str, ...] = ()
    """More of the same to learn from, where no labels are needed."""
    root: str | None = None
    """The folder that the paths of a manifest start from; None for its own."""
    val_fraction: float = 0.1
    """Share of the images for `val`, where the data has no split of its own."""
    fraction: float = 1.0
    """Share of the training images that is used, the same in every class."""
    skip_broken: str = "0"
    """How many broken images may be skipped: a number, or a share such as 1%."""
    balanced: bool = False
    """Show each class equally often."""
    role: Role = "train"
    """`train` is measured on val; `dev` holds a part of the training images out, to choose settings by; `transfer`
    learns from everything but the test images."""
    dev_fraction: float = 0.1
    """Share of the training images that `dev` holds out, where the data has no split for it."""
    split_seed: int | None = None
    """What random splits follow from; None for the run's own seed."""


@dataclass(frozen=True, kw_only=True)
class DataFacts:
    """Facts about the opened data, by which it is recognised later."""

    labels: tuple[str, ...] = ()
    """The classes of the training split."""
    images: int = 0
    """Training images."""
    train_digest: str | None = None
    """SHA-256 of the names and classes of the training images."""
    held_digest: str | None = None
    """SHA-256 of the names and classes of the images to evaluate on."""
    files_digest: str | None = None
    """SHA-256 of the files' paths below the root, sizes and times, or of the numbers of arrays."""
