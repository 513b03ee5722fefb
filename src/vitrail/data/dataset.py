"""A data set: pictures somewhere, a class for each, and the names of the classes.

Every source (a folder, a manifest, shards, arrays, ...) makes a `Dataset`; every reader (loader, survey, evaluation)
takes one. Sources differ only in `Pictures`: where image number 7 is stored.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from vitrail.base.errors import ImageError, InputError
from vitrail.base.shapes import Pixels
from vitrail.base.table import Table, bar
from vitrail.data.names import Rows as Rows
from vitrail.data.pixels.decode import decode, from_array
from vitrail.data.pixels.upper import RowsNeeded, decode_upper
from vitrail.data.stored import UNLABELLED as UNLABELLED
from vitrail.data.stored import Pictures as Pictures

MOST_SHOWN = 20
"""Classes that a notebook lists."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Dataset:
    """A sized collection of images, each with a class or without one."""

    pictures: Pictures
    """Access to the images."""
    rows: Rows
    """Which of the pictures belong to this data set, in order."""
    targets: Rows
    """The class of each image as an index into `labels`, or -1 without a label."""
    labels: tuple[str, ...]
    """The class names; empty when nothing is labelled."""
    where: str
    """The name of the source, for messages."""
    split: str | None = None
    """Which part of it this is; None for everything."""
    channels: int = 3
    """Channels of the images: 3 for files, whatever the arrays have otherwise."""
    skipped: tuple[tuple[str, str], ...] = ()
    """Images that were broken or missing when it was opened: name and reason."""
    ignored: tuple[tuple[str, str], ...] = ()
    """Entries that were ignored on purpose: links to elsewhere, hostile members of an archive."""
    notes: tuple[str, ...] = ()
    """Sentences about the source for the user, such as a class that a split lacks."""

    def __post_init__(self) -> None:
        """Refuse targets that are not classes."""
        if len(self.rows) != len(self.targets):
            raise InputError(f"{self.where} has {len(self.rows)} images but {len(self.targets)} labels.")
        if len(self.targets) and (low := int(self.targets.min())) < UNLABELLED:
            raise InputError(f"{self.where} has the label {low}, which is below 0.")
        if len(self.targets) and (high := int(self.targets.max())) >= len(self.labels):
            raise InputError(f"{self.where} has the label {high}, but only {len(self.labels)} classes, from 0.")

    def __len__(self) -> int:
        """Count the images."""
        return len(self.rows)

    def name(self, index: int) -> str:
        """Return the name of image `index` for the user."""
        return self.pictures.name(int(self.rows[index]))

    def read(self, index: int) -> bytes | np.ndarray:
        """Return image `index` as it is stored."""
        return self.pictures.read(int(self.rows[index]))

    def image(self, index: int, *, needed: RowsNeeded | None = None) -> Pixels:
        """Return image `index` as pixels; one that is broken raises an `ImageError` with its name.

        A caller that `needed` only some rows from the top may get nonsense below them, and sooner.
        """
        try:
            stored = self.read(index)
            if isinstance(stored, np.ndarray):
                return from_array(stored)
            upper = decode_upper(stored, needed) if needed else None
            return decode(stored) if upper is None else upper
        except ImageError as error:
            raise ImageError(f"{self.name(index)}: {error}") from None
        except OSError as error:
            raise ImageError(f"{self.name(index)} could not be read: {error.strerror or error}.") from None

    def take(self, indices: Rows | Sequence[int], *, split: str | None = None) -> "Dataset":
        """Return a data set of some of the images, in the order given, with the same classes."""
        chosen = np.asarray(indices, dtype=np.int64)
        return replace(self, rows=self.rows[chosen], targets=self.targets[chosen], split=split or self.split)

    @property
    def counts(self) -> Rows:
        """Count the images of each class."""
        return np.bincount(self.targets[self.targets >= 0], minlength=len(self.labels))

    def __repr__(self) -> str:
        """Write what it is in a line."""
        split = f" ({self.split})" if self.split else ""
        return f"<Dataset {self.where}{split}: {len(self):,} images, {len(self.labels):,} classes>"

    def _repr_html_(self) -> str:
        """List the classes with their images, for a notebook."""
        counts = self.counts.tolist()
        most = max(counts, default=0) or 1
        rows = [(label, f"{count:,}", bar(count / most)) for label, count in zip(self.labels, counts, strict=True)]
        hidden = [f"{len(rows) - MOST_SHOWN:,} more classes."] if len(rows) > MOST_SHOWN else []
        title = f"{self.where}, {self.split} split" if self.split else self.where
        unlabelled = len(self) - sum(counts)
        lacking = [f"{unlabelled:,} images have no class."] if unlabelled else []
        return Table(
            title=f"{title}: {len(self):,} images",
            columns=("class", "images", ""),
            rows=tuple(rows[:MOST_SHOWN]),
            notes=(*hidden, *lacking, *self.notes),
        ).html()
