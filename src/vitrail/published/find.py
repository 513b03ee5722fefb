"""Where a model lies that is given by a path, by the name of a published one, or as `backbone`; no network is used."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vitrail.base.errors import InputError
from vitrail.published.bundled import BACKBONE, backbone_path
from vitrail.published.cache import Cache
from vitrail.published.record import Record
from vitrail.published.source import is_path, parse_source


@dataclass(frozen=True, kw_only=True)
class Place:
    """A model with a name that is on this machine."""

    path: Path
    """What is loaded: a file or a folder."""
    hints: Mapping[str, Any]
    """What the file does not state."""
    record: Record | None = None
    """What it was when it was pulled; None for the backbone, which is part of the package."""


def find_published(name: str | os.PathLike[str]) -> Place | None:
    """Return where a published model lies; None for a path, and for what no published model is called.

    A file or folder of the same name comes first. One that is not on this machine is refused, with the command that
    gets it.
    """
    text = os.fspath(name)
    if is_path(text):
        return None
    if text == BACKBONE:
        return Place(path=backbone_path(), hints={})
    source = parse_source(text)
    if source is None:
        return None
    record = Cache.usual().record(source)
    if record is None:
        raise InputError(
            f"{source.name} is published, but not on this machine; get it once with `vitrail pull {source.name}`, or "
            "vitrail.pull in Python."
        )
    return Place(path=record.path, hints={} if source.entry is None else source.entry.hints, record=record)


def located(path: str | os.PathLike[str]) -> Path:
    """Return where a model lies that is given by its path, or by the name of a published one."""
    place = find_published(path)
    return Path(path) if place is None else place.path


def model_name(path: str) -> str:
    """Return what the user calls a model: the name of its run folder, of its file, or that it is published by."""
    source = None if is_path(path) else parse_source(path)
    if source is not None:
        return source.label
    file = Path(path)
    return file.resolve().parent.name if file.name == "model.safetensors" else file.stem
