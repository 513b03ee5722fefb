"""Tiny-ImageNet-200 as published: 200 classes of 500 training images, and 10,000 validation images in one folder.

    wnids.txt                            the WordNet ids of the classes, a line each: their order
    words.txt                            `n01443537<TAB>goldfish, Carassius auratus`, for all of WordNet
    train/n01443537/images/*.JPEG        with n01443537_boxes.txt beside images/, which is not read
    val/images/*.JPEG                    with val/val_annotations.txt: file, id and box, between tabs
    test/images/*.JPEG                   without labels: left alone

Classes have the names of words.txt, or their ids where it has none or two classes would have the same name.
"""

import os
import re
from array import array
from collections import Counter
from pathlib import Path

import numpy as np

from vitrail.base.errors import InputError
from vitrail.base.reading import read_text
from vitrail.data.budget import Skipped
from vitrail.data.sources.files import Files, is_file_in, real_folders
from vitrail.data.sources.folder import Walk
from vitrail.data.sources.pile import Pile, class_name

_IDS, _WORDS, _ANNOTATIONS = Path("wnids.txt"), Path("words.txt"), Path("val", "val_annotations.txt")
_ID = re.compile(r"n\d{8}")


def is_tiny_imagenet(folder: Path) -> bool:
    """Return whether a folder has the lists and the folders of the data set."""
    lists = all(is_file_in(folder, folder / name) for name in (_IDS, _ANNOTATIONS))
    return lists and (folder / "train").is_dir() and (folder / "val" / "images").is_dir()


def open_tiny_imagenet(folder: Path) -> Pile:
    """Read the published lists and folders."""
    ids = _ids(folder)
    place = {wnid: at for at, wnid in enumerate(ids)}
    walk = Walk(folder, real_folders(folder), os.path.join(folder, ""))  # noqa: PTH118
    parts = _folders(walk, str(folder))
    targets, notes = array("i"), []
    classes = _folders(walk, parts["train"]) if "train" in parts else {}
    for wnid in ids:
        before = len(walk.paths)
        for path in walk.images(classes[wnid]) if wnid in classes else ():
            walk.add(path, "", 0)
        targets.extend([place[wnid]] * (len(walk.paths) - before))
    if strange := [name for name in classes if name not in place]:
        notes.append(f"{len(strange)} folders of {parts['train']} are not in {_IDS}, such as {strange[0]}: ignored.")
    there, missing = _images(walk, parts.get("val")), []
    for name, wnid in _annotations(folder / _ANNOTATIONS, place):
        if path := there.pop(name, ""):
            walk.add(path, "", 1)
            targets.append(place[wnid])
        else:
            missing.append((str(folder / "val" / "images" / name), "there is no such file"))
    if there:
        notes.append(f"{len(there)} images of val have no line in {_ANNOTATIONS} and were left alone.")
    if unlabelled := _images(walk, parts.get("test")):
        inside = Path(parts["test"]) / "images"
        notes.append(f"the {len(unlabelled)} images of test have no labels and were left alone; {inside} opens them.")
    return _pile(walk, folder, targets, _names(folder, ids), missing, notes)


def _pile(
    walk: Walk, folder: Path, targets: "array[int]", names: tuple[str, ...], missing: list[Skipped], notes: list[str]
) -> Pile:
    return Pile(
        pictures=Files(folder, walk.paths.build(), walk.allowed),
        targets=np.array(targets, np.int32),
        names=names,
        fixed=True,
        splits=np.array(walk.splits, np.int8),
        split_names=("train", "val"),
        broken=tuple(missing),
        ignored=tuple(walk.ignored),
        notes=tuple(notes),
    )


def _folders(walk: Walk, path: str) -> dict[str, str]:
    """Return the folders in a folder, by name; links that lead outside do not count."""
    return {entry.name: entry.path for entry in walk.entries(path) if entry.is_dir()}


def _images(walk: Walk, part: str | None) -> dict[str, str]:
    """Return the images of a split that has them in one folder, by name."""
    inside = None if part is None else _folders(walk, part).get("images")
    return {} if inside is None else {os.path.basename(path): path for path in walk.pick(walk.entries(inside))}  # noqa: PTH119


def _lines(path: Path) -> list[str]:
    return read_text(path, errors="replace").splitlines()


def _ids(folder: Path) -> list[str]:
    """Read the classes in their order."""
    ids = [line.strip() for line in _lines(folder / _IDS) if line.strip()]
    if odd := next((wnid for wnid in ids if not _ID.fullmatch(wnid)), None):
        raise InputError(f"{folder / _IDS} has the line {odd[:60]!r}, which is not a WordNet id such as n01443537.")
    if len(set(ids)) < len(ids) or not ids:
        problem = "lists a WordNet id twice" if ids else "lists no classes"
        raise InputError(f"{folder / _IDS} {problem}; get the published file.")
    return ids


def _names(folder: Path, ids: list[str]) -> tuple[str, ...]:
    """Look up what the classes are called."""
    path = folder / _WORDS
    pairs = (line.split("\t", 1) for line in (_lines(path) if is_file_in(folder, path) else []) if "\t" in line)
    words = {wnid: class_name(text) for wnid, text in pairs}
    names = [words.get(wnid) or wnid for wnid in ids]
    often = Counter(names)
    return tuple(name if often[name] == 1 else wnid for name, wnid in zip(names, ids, strict=True))


def _annotations(path: Path, classes: dict[str, int]) -> list[tuple[str, str]]:
    """Read which class each validation image has."""
    labels: dict[str, str] = {}
    for at, line in enumerate(_lines(path), start=1):
        if not line.strip():
            continue
        name, wnid = [*line.split("\t"), ""][:2]
        if not name or wnid not in classes:
            raise InputError(
                f"line {at} of {path} is {line[:60]!r}, but must be a file and a WordNet id of {_IDS}, between tabs."
            )
        if labels.setdefault(name, wnid) != wnid:
            raise InputError(f"line {at} of {path} gives {name} a second class; get the published file.")
    return list(labels.items())
