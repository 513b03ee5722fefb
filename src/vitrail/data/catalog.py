"""Open any data: find its kind, its classes and its splits, with notes for the user.

Splits: names that the data have are used as they are. One pile, or data with nothing but `train`, is cut into `train`
and `val`, class by class, by the seed. Where there is only one of `val` and `test`, both names mean it.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from vitrail.base.errors import ConfigError, InputError, did_you_mean
from vitrail.base.files import path_of
from vitrail.data import classes
from vitrail.data.budget import Budget, named
from vitrail.data.dataset import UNLABELLED, Dataset
from vitrail.data.kinds import find
from vitrail.data.sources.indexed import write_index
from vitrail.data.sources.pile import Codes, Pile, split_of
from vitrail.data.subsets import stratified_split

_ORDER = ("train", "val", "test")
_HELD_OUT = ("val", "test")


def open(  # noqa: A001  (vitrail.data.open is what people write)
    where: str | os.PathLike[str],
    *,
    split: str | None = None,
    val_fraction: float = 0.1,
    seed: int = 0,
    labels: Sequence[str] | None = None,
    skip_broken: str = "0",
    root: str | os.PathLike[str] | None = None,
) -> Dataset:
    """Open one split of some data, or everything when no split is named.

    `labels` are the classes of a model or of the training data: classes are matched with them by name, and an image
    of any other class is refused. `skip_broken` is how much may be broken or missing: `5` images, or `1%`. `root` is
    a folder whose files may be read beside those of `where`, and where the paths of a manifest begin.
    """
    opened = Opened.of(where, skip_broken, root, labels, val_fraction, seed)
    return opened.everything() if split is None else opened.split(split_of(split) or split)


def open_splits(
    where: str | os.PathLike[str],
    *,
    val_fraction: float = 0.1,
    seed: int = 0,
    labels: Sequence[str] | None = None,
    skip_broken: str = "0",
    root: str | os.PathLike[str] | None = None,
    loose: bool = False,
) -> dict[str, Dataset]:
    """Open all the splits of some data, training first; one pile is `train` and `val`.

    `loose` takes the images that lie beside class folders too, which have no class.
    """
    opened = Opened.of(where, skip_broken, root, labels, val_fraction, seed, loose=loose)
    return {name: opened.split(name) for name in opened.names()}


def save_index(
    where: str | os.PathLike[str],
    path: str | os.PathLike[str],
    *,
    skip_broken: str = "0",
    root: str | os.PathLike[str] | None = None,
) -> None:
    """Write the index of files or shards into one file, which `open` then opens at once."""
    opened = Opened.of(where, skip_broken, root, None, 0.1, 0)
    write_index(opened.pile, Path(path))


@dataclass(frozen=True, kw_only=True)
class Opened:
    """A pile with its classes decided."""

    where: str
    pile: Pile
    labels: tuple[str, ...]
    targets: Codes
    notes: tuple[str, ...]
    explicit: bool
    val_fraction: float
    seed: int
    loose: bool = False
    """Whether images without a class count too, so that classes do not decide what is held out."""

    @classmethod
    def of(
        cls,
        where: str | os.PathLike[str],
        skip_broken: str,
        root: str | os.PathLike[str] | None,
        labels: Sequence[str] | None,
        val_fraction: float,
        seed: int,
        *,
        every_class: bool = False,
        loose: bool = False,
    ) -> "Opened":
        """Find data, check its budget, and decide its classes: `labels`, or those of the training or of all splits."""
        if not 0 < val_fraction < 1:
            raise ConfigError(f"val_fraction is {val_fraction}, but must be between 0 and 1.")
        budget = Budget.parse(skip_broken)
        name = os.fspath(where)
        path_of(name, "data")
        pile = find(name, root=None if root is None else Path(root), loose=loose)
        budget.spend(pile.broken, len(pile.targets) + len(pile.broken), where=name)
        if not len(pile.targets):
            raise InputError(
                f"{name} has no image left; {len(pile.broken)} are broken or missing: {named(pile.broken)}."
            )
        training = None if every_class else _in(pile, "train")
        decided = classes.decide(pile, training) if labels is None else tuple(labels)
        targets, notes = classes.match(pile, decided, explicit=labels is not None)
        if pile.ignored:
            notes.append(f"{len(pile.ignored)} entries were not followed or read: {named(pile.ignored)}.")
        if pile.broken:
            notes.append(f"{len(pile.broken)} images were skipped: {named(pile.broken)}.")
        return cls(
            where=name,
            pile=pile,
            labels=decided,
            targets=targets,
            notes=(*pile.notes, *notes),
            explicit=labels is not None,
            val_fraction=val_fraction,
            seed=seed,
            loose=loose,
        )

    def is_one_pile(self) -> bool:
        """Return whether validation images have to be cut off from the training images."""
        return self.pile.splits is None or self.pile.split_names == ("train",)

    def names(self) -> list[str]:
        """Return the names of the splits, training first."""
        if self.is_one_pile():
            return ["train", "val"]
        names = self.pile.split_names
        return sorted(
            names, key=lambda name: (_ORDER.index(name) if name in _ORDER else len(_ORDER), names.index(name))
        )

    def everything(self) -> Dataset:
        """Return all images; classes that training lacks come after the others."""
        if self.explicit or not (self.targets == classes.UNKNOWN).any():
            return self.dataset(None, np.arange(len(self.targets)))
        extra = np.unique(self.pile.targets[self.targets == classes.UNKNOWN])
        names = tuple(self.pile.names[code] for code in extra)
        labels = (*self.labels, *names)
        targets, _ = classes.match(self.pile, labels, explicit=False)
        note = f"{len(names)} classes have no training images and come after the others: {classes.few(names)}."
        return replace(self, labels=labels, targets=targets, notes=(*self.notes, note)).dataset(
            None, np.arange(len(targets))
        )

    def split(self, name: str) -> Dataset:
        """Return one split."""
        names = self.names()
        if name not in names and name in _HELD_OUT and "train" in names:
            others = [other for other in _HELD_OUT if other in names]
            if len(others) == 1:
                note = f"{self.where} has no {name} split; its {others[0]} split was taken."
                dataset = self.split(others[0])
                return replace(dataset, notes=(*dataset.notes, note))
        if name not in names:
            raise InputError(
                f"{self.where} has the splits {', '.join(names)}, but no {name}.{did_you_mean(name, names)}"
            )
        if not self.is_one_pile():
            return self.dataset(name, self._rows(name))
        whole = self.dataset("train", self._rows("train"))
        rest, held_out = stratified_split(whole, self.val_fraction, self.seed)
        if self.loose and not len(held_out):  # no class has two images
            unsorted = replace(whole, targets=np.full_like(whole.targets, UNLABELLED), labels=())
            rest, held_out = stratified_split(unsorted, self.val_fraction, self.seed)
        chosen = rest if name == "train" else held_out
        return self.dataset(name, chosen.rows)

    def _rows(self, split: str) -> Codes:
        """Return the pictures of a split; all of them when there is one pile."""
        inside = _in(self.pile, split)
        return np.arange(len(self.targets)) if inside is None else np.flatnonzero(inside)

    def dataset(self, split: str | None, rows: Codes) -> Dataset:
        """Make a data set of some rows."""
        part = f"the {split} split of {self.where}" if split else self.where
        if not len(rows):
            least = "two images or more" if self.loose else "each class two images or more, or a val folder"
            cut = f"; give {least}" if self.is_one_pile() and split else ""
            raise InputError(f"{part} is empty{cut}.")
        targets = self.targets[rows]
        classes.refuse_unknown(self.pile, targets, self.pile.targets[rows], part, self.labels)
        return Dataset(
            pictures=self.pile.pictures,
            rows=rows,
            targets=targets,
            labels=self.labels,
            where=self.where,
            split=split,
            channels=self.pile.channels,
            skipped=self.pile.broken,
            ignored=self.pile.ignored,
            notes=(*self.notes, *classes.describe(targets, self.labels, part), *self._strangers(split)),
        )

    def _strangers(self, split: str | None) -> list[str]:
        """Return a note, for the training images, about splits with classes that they lack."""
        if split != "train" or self.explicit or self.is_one_pile():
            return []
        odd = np.unique(self.pile.targets[self.targets == classes.UNKNOWN])
        names = [self.pile.names[code] for code in odd]
        return (
            [f"other splits have {len(names)} classes without training images: {classes.few(names)}."] if names else []
        )


def _in(pile: Pile, split: str) -> np.ndarray | None:
    """Return which images are in a split; None when the pile is not split, or has no such split."""
    if pile.splits is None or split not in pile.split_names:
        return None
    return np.asarray(pile.splits == pile.split_names.index(split))
