"""Images as the verbs take them: paths, folders, patterns and lists of files, or pictures in memory."""

import glob
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from vitrail.base.errors import InputError
from vitrail.base.notes import Note
from vitrail.data.pictures import Picture, name_of
from vitrail.prediction.folder import Listing, list_images


@dataclass(frozen=True, kw_only=True, eq=False)
class ImageList:
    """Images in order, each read when it is needed."""

    names: tuple[str, ...]
    """The path of each image, or its place among the others."""
    read: Callable[[int], Picture]
    """Returns an image by its place; one that cannot be read raises an `ImageError`."""

    def __len__(self) -> int:
        """Count the images."""
        return len(self.names)


def open_images(
    images: Picture | list[Any] | tuple[Any, ...], note: Note, stdin: Callable[[], bytes] = bytes
) -> ImageList:
    """List images: paths are expanded as `vitrail predict` does, pictures in memory are taken as they are."""
    pictures = list(images) if isinstance(images, list | tuple) else [images]
    if not pictures:
        raise InputError("images is empty; give one image, or a list of at least one.")
    paths = [os.fspath(picture) for picture in pictures if isinstance(picture, str | os.PathLike)]
    if len(paths) < len(pictures):
        names = tuple(name_of(picture, place) for place, picture in enumerate(pictures))
        return ImageList(names=names, read=lambda place: pictures[place])
    listing = list_words(paths, stdin, note)
    return ImageList(names=tuple(listing.name(row) for row in range(len(listing))), read=listing.read)


def is_many(path: str) -> bool:
    """Return whether a path means several images: a folder, a list, a pattern."""
    there = os.path.lexists(path)
    return os.path.isdir(path) if there else path.startswith("@") or glob.has_magic(path)  # noqa: PTH112


def list_words(words: Sequence[str], stdin: Callable[[], bytes], note: Note) -> Listing:
    """List the files that paths and patterns mean, and note those left out."""
    listing = list_images(words, stdin)
    for sentence in listing.notes:
        note(sentence)
    return listing
