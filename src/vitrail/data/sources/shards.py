"""Tar shards in WebDataset layout, read in place.

    train-000000.tar          images and labels of one key are beside each other:
        a/0001.jpg            the key is the path up to the first dot of the file's name
        a/0001.cls            a number, or .txt: a class name, or .json: {"label": number or name}

`data-{000000..000099}.tar`, `data-*.tar`, a folder of tars, or one tar. The split is in the names (train-0.tar) or
folders (train/0.tar). `labels.txt` or `classes.txt` beside the shards names the classes, one a line.
"""

import json
import os
from array import array
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from vitrail.base.errors import InputError
from vitrail.base.limits import IMAGE_BYTES
from vitrail.base.reading import read_text
from vitrail.data.budget import Skipped
from vitrail.data.names import NamesBuilder
from vitrail.data.sources.files import is_file_in
from vitrail.data.sources.pile import NO_SPLIT, Codebook, Pile, class_name, is_image, is_number, sort_classes
from vitrail.data.sources.shard_pictures import ShardPictures
from vitrail.data.sources.tar import DamagedError, Member, members

_LABELS = ("cls", "json", "txt")  # the first that a key has is believed
_MOST_LABEL = {"cls": 64, "txt": 4096, "json": 1 << 20}
_PICKLES = frozenset({"pkl", "pickle", "pyd", "pth", "pt"})


@dataclass
class _Reading:
    """The contents of the shards so far."""

    names: NamesBuilder = field(default_factory=NamesBuilder)
    shard: array = field(default_factory=lambda: array("i"))  # type: ignore[type-arg]
    offsets: array = field(default_factory=lambda: array("q"))  # type: ignore[type-arg]
    sizes: array = field(default_factory=lambda: array("q"))  # type: ignore[type-arg]
    splits: array = field(default_factory=lambda: array("b"))  # type: ignore[type-arg]
    classes: Codebook = field(default_factory=lambda: Codebook("the shards"))
    broken: list[Skipped] = field(default_factory=list)
    ignored: list[Skipped] = field(default_factory=list)
    others: int = 0


def open_shards(shards: list[tuple[Path, str | None]], where: str, *, beside: Path) -> Pile:
    """Index shards, each with the split that it belongs to; a list of classes may be in the folder `beside`."""
    if not shards:
        raise InputError(f"{where} names no tar file.")
    split_names = tuple(dict.fromkeys(split for _, split in shards if split))
    reading = _Reading()
    for number, (path, split) in enumerate(shards):
        _read_shard(reading, number, path, split_names.index(split) if split else NO_SPLIT)
    if not len(reading.names) and not reading.broken:
        raise InputError(f"{where} has no images in {len(shards)} tar files ({reading.others} other members).")
    listed = _class_list(beside)
    names, targets, numeric = sort_classes(
        tuple(reading.classes.codes), np.array(reading.classes.values, np.int32), where
    )
    if listed is not None:
        names, targets, numeric = listed, _among(listed, names, targets, numeric, where), False
    pictures = ShardPictures(
        tuple(path for path, _ in shards),
        reading.names.build(),
        np.array(reading.shard, np.int32),
        np.array(reading.offsets, np.int64),
        np.array(reading.sizes, np.int64),
    )
    return Pile(
        pictures=pictures,
        targets=targets,
        names=names,
        fixed=listed is not None,
        numeric=numeric,
        splits=np.array(reading.splits, np.int8) if split_names else None,
        split_names=split_names,
        broken=tuple(reading.broken),
        ignored=tuple(reading.ignored),
        notes=(*reading.classes.notes(), *_notes(reading)),
    )


def _notes(reading: _Reading) -> list[str]:
    others = reading.others
    return [f"{others} members of the shards are neither images nor labels."] if others else []


def _read_shard(reading: _Reading, number: int, path: Path, split: int) -> None:
    """Index one shard."""
    images: dict[str, Member] = {}
    labels: dict[str, tuple[int, str]] = {}
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise InputError(f"the shard {path} cannot be opened: {error.strerror}.") from None
    try:
        for member in members(handle):
            if problem := _problem_with(member):
                if member.kind != "a folder":
                    reading.ignored.append((f"{path}:{member.name}", problem))
                continue
            key, suffix = _key(member.name)
            if is_image(f"x.{suffix}") and "." not in suffix:  # x.mask.png is another field of x, not its image
                _add_image(reading, images, key, member, path)
            elif suffix in _LABELS:
                try:
                    entry = _LABELS.index(suffix), _label(handle, member, suffix)
                except ValueError as error:
                    reading.broken.append((f"{path}:{member.name}", f"{error}"))
                    entry = -1, ""  # the image goes with its label
                if key not in labels or entry[0] < labels[key][0]:
                    labels[key] = entry
            else:
                reading.others += 1
    except DamagedError as error:
        reading.broken.append((str(path), str(error)))
    except OSError as error:
        raise InputError(f"the shard {path} cannot be read: {error.strerror}.") from None
    finally:
        os.close(handle)
    for key, member in images.items():
        rank, label = labels.get(key, (0, ""))
        if rank < 0:
            continue
        reading.names.add(member.name.encode())
        reading.shard.append(number)
        reading.offsets.append(member.offset)
        reading.sizes.append(member.size)
        reading.splits.append(split)
        reading.classes.add(label)


def _add_image(reading: _Reading, images: dict[str, Member], key: str, member: Member, path: Path) -> None:
    """Keep the first image of a key."""
    if key in images:
        reading.broken.append((f"{path}:{member.name}", f"the shard already has {images[key].name}"))
    elif member.size > IMAGE_BYTES.value:
        reading.broken.append((f"{path}:{member.name}", f"{member.size} bytes are too many for an image"))
    else:
        images[key] = member


def _problem_with(member: Member) -> str | None:
    """Return why a member is left alone; empty where it is read."""
    if member.kind is not None:
        return f"{member.kind}, no plain file"
    if member.name.startswith("/") or ".." in member.name.split("/") or "\\" in member.name:
        return "a path that leads out of the shard"
    if _key(member.name)[1].rpartition(".")[2] in _PICKLES:
        return "a pickle, which could run anything"
    return None


def _key(name: str) -> tuple[str, str]:
    """Cut a path at the first dot of its last part."""
    folder, slash, file = name.rpartition("/")
    stem, _, suffix = file.partition(".")
    return folder + slash + stem, suffix.lower()


def _label(handle: int, member: Member, suffix: str) -> str:
    """Read a label, as a word; a number is a word too."""
    if member.size > _MOST_LABEL[suffix]:
        raise ValueError(f"{member.size} bytes are too many for a label")
    try:
        text = os.pread(handle, member.size, member.offset).decode().strip()
        if suffix == "cls":
            if not is_number(text) or text.startswith("-"):
                raise ValueError(f"{text[:40]!r} is not a class number from 0 on")
            return text
        if suffix == "txt":
            return text.partition("\n")[0]
        described = json.loads(text)
        label = described.get("label") if isinstance(described, dict) else None
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError):
        raise ValueError("the label is not text or not JSON") from None
    if label is None:
        return ""
    if isinstance(label, int | str) and not isinstance(label, bool):
        return str(label)
    raise ValueError("the label is neither a number nor a name")


def _class_list(folder: Path) -> tuple[str, ...] | None:
    """Read the class names beside the shards."""
    for path in (folder / "labels.txt", folder / "classes.txt"):
        if is_file_in(folder, path):
            lines = read_text(path, errors="replace").splitlines()
            return tuple(class_name(line) for line in lines if line.strip())
    return None


def _among(
    listed: tuple[str, ...], names: tuple[str, ...], targets: np.ndarray, numeric: bool, where: str
) -> np.ndarray:
    """Turn numbers or names into places in the list of classes."""
    used = [names[code] for code in np.unique(targets[targets >= 0])]
    if numeric:
        if used and int(used[-1]) >= len(listed):
            raise InputError(f"{where} has the label {used[-1]}, but its list of classes names {len(listed)}, from 0.")
        return targets
    place = {name: at for at, name in enumerate(listed)}
    if unknown := [name for name in used if name not in place]:
        raise InputError(f"{where} has the label {unknown[0]!r}, which its list of classes does not name.")
    table = np.array([*(place.get(name, NO_SPLIT) for name in names), NO_SPLIT], np.int32)
    return table[targets]
