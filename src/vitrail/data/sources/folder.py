"""Class folders, with or without split folders above them; a flat folder; a single image.

    ROOT/CLASS/.../image.jpg          one pile
    ROOT/train/CLASS/.../image.jpg    splits: train, val (validation, valid, dev), test, in any case
    ROOT/image.jpg                    no classes: for prediction

The folder right below the root or the split is the class; images deeper inside belong to it.
"""

import os
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from vitrail.base.errors import InputError
from vitrail.base.files import name_text
from vitrail.data.budget import Skipped
from vitrail.data.names import Names, NamesBuilder, names_of
from vitrail.data.sources import imagenet
from vitrail.data.sources.files import Files, is_inside, real_folders
from vitrail.data.sources.pile import NO_SPLIT, Codebook, Pile, is_image, sort_classes, split_of
from vitrail.data.stored import UNLABELLED

_OUTSIDE = "a link to a place outside the given folder, which is not read"


@dataclass
class Walk:
    """The state of one walk over a tree."""

    root: Path
    allowed: tuple[bytes, ...]
    prefix: str
    """The beginning of every path."""
    paths: NamesBuilder = field(default_factory=NamesBuilder)
    classes: Codebook = field(default_factory=lambda: Codebook("the folder"))
    splits: array = field(default_factory=lambda: array("b"))  # type: ignore[type-arg]
    ignored: list[Skipped] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    """The first few files that are not images."""
    other_count: int = 0

    def entries(self, folder: str) -> list[os.DirEntry[str]]:
        """List a folder in the order of its names, without hidden files and links that lead nowhere or outside."""
        try:
            with os.scandir(folder) as listing:
                entries = sorted(listing, key=lambda entry: os.fsencode(entry.name))
        except OSError as error:
            raise InputError(f"the folder {folder} cannot be listed: {error.strerror}; check its rights.") from None
        return [entry for entry in entries if not entry.name.startswith(".") and self._is_inside(entry)]

    def _is_inside(self, entry: os.DirEntry[str]) -> bool:
        """Return whether an entry is part of the tree; a link that is not is noted."""
        if entry.is_symlink():
            real = os.fsencode(os.path.realpath(entry.path))
            if not is_inside(real, self.allowed):
                self.ignored.append((entry.path, _OUTSIDE))
                return False
            if is_inside(os.fsencode(os.path.realpath(os.path.dirname(entry.path))), (real,)):  # noqa: PTH120
                self.ignored.append((entry.path, "a link to a folder that contains it"))
                return False
            try:
                entry.stat()
            except OSError:
                self.ignored.append((entry.path, "a link to nothing"))
                return False
        return entry.name != "__MACOSX"

    def images(self, folder: str) -> Iterator[str]:
        """Walk over the images of a folder and of the folders inside; each real folder only once."""
        seen: set[tuple[int, int]] = set()
        waiting = [folder]
        while waiting:
            here = waiting.pop()
            status = os.stat(here)  # noqa: PTH116
            if (status.st_dev, status.st_ino) in seen:
                self.ignored.append((here, "a link to a folder that was already read"))
                continue
            seen.add((status.st_dev, status.st_ino))
            entries = self.entries(here)
            yield from self.pick(entries)
            waiting += reversed([entry.path for entry in entries if entry.is_dir()])

    def pick(self, entries: list[os.DirEntry[str]]) -> Iterator[str]:
        """Walk over the images among the entries of a folder, and count the other files."""
        for entry in entries:
            if is_image(entry.name) and entry.is_file():
                yield entry.path
            elif not entry.is_dir():
                self.leave(entry.path)

    def leave(self, path: str) -> None:
        """Count a file that is not an image."""
        self.other_count += 1
        if len(self.others) < 3:
            self.others.append(path)

    def add(self, path: str, label: str, split: int) -> None:
        """Note one image."""
        self.paths.add(os.fsencode(path[len(self.prefix) :]))
        self.classes.add(label)
        self.splits.append(split)


def open_folder(root: Path, *, also: Path | None = None, loose: bool = False) -> Pile:
    """Read a tree of images; links inside it are followed as long as they stay inside it, or inside `also`.

    `loose` takes the images that lie beside class folders too, without a class.
    """
    walk = Walk(root, real_folders(root, also), os.path.join(root, ""))  # noqa: PTH118
    notes: list[str] = []
    entries = walk.entries(str(root))
    top = [entry for entry in entries if entry.is_dir()]
    named = {folder: split for folder in top if (split := split_of(folder.name))}
    if named and ("train" in named.values() or len(named) == len(top)):
        split_names = tuple(sorted(set(named.values()), key=("train", "val", "test").index))
        if len(split_names) < len(named):
            raise InputError(
                f"{root} has the folders {', '.join(folder.name for folder in named)}, of which some mean the same "
                "split (validation, valid and dev are val); put them together or rename one."
            )
        for folder, split in named.items():
            entries = walk.entries(folder.path)
            notes += _add_pile(walk, folder.path, entries, split_names.index(split), loose=loose)
        if rest := [folder.name for folder in top if folder not in named]:
            notes.append(f"beside the splits, the folders {_few(rest)} of {root} were left alone.")
        splits = np.frombuffer(walk.splits, np.int8) if walk.splits else np.empty(0, np.int8)
    else:
        split_names, splits = (), None
        notes += _add_pile(walk, str(root), entries, NO_SPLIT, loose=loose)
    if not len(walk.paths):
        raise InputError(f"{root} holds no images{_why(walk)}; give a folder of class folders, or of image files.")
    notes += walk.classes.notes()
    if walk.other_count:
        notes.append(f"{walk.other_count} files that are not images were ignored, such as {', '.join(walk.others)}.")
    names, targets, _ = sort_classes(
        tuple(walk.classes.codes), np.frombuffer(walk.classes.values, np.int32), str(root), numbers=False
    )
    return Pile(
        pictures=Files(root, walk.paths.build(), walk.allowed),
        targets=targets,
        names=names,
        splits=splits,
        split_names=split_names,
        ignored=tuple(walk.ignored),
        notes=tuple(notes),
    )


def find_images(root: Path, *, needed: bool = True) -> tuple[Names, list[Skipped]]:
    """Find every image below a folder, whatever the folders in between are called, and the links not followed.

    A folder without images is refused where they are `needed`.
    """
    walk = Walk(root, real_folders(root), "")
    for path in walk.images(str(root)):
        walk.paths.add(os.fsencode(path))
    if needed and not len(walk.paths):
        raise InputError(f"{root} holds no images{_why(walk)}.")
    return walk.paths.build(), walk.ignored


def _add_pile(
    walk: Walk, folder: str, entries: list[os.DirEntry[str]], split: int, *, loose: bool = False
) -> list[str]:
    """Add the class folders of one split, or its loose images when there are none; return notes."""
    folders = [entry for entry in entries if entry.is_dir()]
    beside = list(walk.pick(entries))
    if not folders:
        labels = imagenet.validation_labels(walk.root, Path(folder), [path.rpartition("/")[2] for path in beside])
        for path, label in zip(beside, labels or [""] * len(beside), strict=True):
            walk.add(path, label, split)
        return []
    empty = []
    for inner in folders:
        before = len(walk.paths)
        for path in walk.images(inner.path):
            walk.add(path, name_text(inner.name), split)
        if len(walk.paths) == before:
            empty.append(inner.name)
    notes = [f"the class folders {_few(empty)} of {folder} hold no images."] if empty else []
    if loose:
        for path in beside:
            walk.add(path, "", split)
    elif beside:
        notes.append(f"{len(beside)} images beside the class folders of {folder} have no class and were left alone.")
    return notes


def _few(names: list[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def _why(walk: Walk) -> str:
    """Return notes about what else was there."""
    others = []
    if walk.other_count:
        others.append(f"{walk.other_count} other files such as {walk.others[0]}")
    if walk.ignored:
        others.append(f"{len(walk.ignored)} links that were not followed, such as {walk.ignored[0][0]}")
    return f" (but {' and '.join(others)})" if others else ""


def open_image(path: Path) -> Pile:
    """Read a single image file."""
    return Pile(
        pictures=Files(path.parent, names_of([os.fsencode(path.name)]), real_folders(path.resolve().parent)),
        targets=np.array([UNLABELLED], np.int32),
        names=(),
    )
