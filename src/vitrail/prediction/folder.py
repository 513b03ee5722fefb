"""What to work through: image files, folders of them, patterns, and lists, in order and each file once.

| word               | what it stands for                                                                       |
|--------------------|------------------------------------------------------------------------------------------|
| `photo.jpg`        | a file, whatever its extension                                                           |
| `photos/`          | the images below a folder, by extension: those of a folder by name, then its folders     |
| `'photos/*.jpg'`   | what a pattern finds, by name; folders are walked, `**` stands for any number of folders |
| `@list.txt`        | the paths in a text, one on each line, or with a zero byte between them                  |
| `-`                | the same from stdin                                                                      |

Links are followed as long as they stay inside the folder that was given; a file that is named itself may be anywhere.
"""

import glob
import hashlib
import os
import re
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Int

from vitrail.base.errors import ImageError, InputError
from vitrail.base.files import path_of
from vitrail.base.limits import LIST_BYTES
from vitrail.base.reading import read_bytes
from vitrail.data.budget import Skipped, named
from vitrail.data.names import Names, NamesBuilder
from vitrail.data.sources.files import is_inside, missing, read_inside, real_folder, real_folders
from vitrail.data.sources.folder import find_images
from vitrail.data.sources.patterns import matching
from vitrail.data.sources.pile import is_image

_ANYWHERE = b"/"


@dataclass(frozen=True, kw_only=True, eq=False)
class Listing:
    """Image files in the order of the work."""

    names: Names
    """Their paths."""
    roots: Int[np.ndarray, "image"]
    """Which of the `allowed` folders each must lie in."""
    allowed: tuple[bytes, ...]
    """Real folders."""
    start: bytes
    """The folder that relative paths start from."""
    notes: tuple[str, ...] = ()
    """What was left out, a sentence each."""

    def __len__(self) -> int:
        """Count the files."""
        return len(self.names)

    def name(self, row: int) -> str:
        """Return the path of a file as the user reads it."""
        return self.names.text(row)

    def read(self, row: int) -> bytes:
        """Read a file, if it is a plain one where it should be."""
        try:
            path = os.path.join(self.start, self.names[row])  # noqa: PTH118
            return read_inside(path, (self.allowed[self.roots[row]],))
        except FileNotFoundError:
            raise ImageError("there is no such file.") from None
        except OSError as error:
            raise ImageError(f"it could not be read: {error.strerror or error}.") from None

    @property
    def digest(self) -> str:
        """SHA-256 of all the paths in their order."""
        hashed = hashlib.sha256(np.ascontiguousarray(self.names.blob).data)
        hashed.update(np.ascontiguousarray(self.names.offsets, dtype="<i8").data)
        return hashed.hexdigest()

    def save(self, path: Path) -> None:
        """Write the list for other ranks."""
        from vitrail.data.index import write_arrays

        arrays = {"blob": self.names.blob, "offsets": self.names.offsets, "roots": self.roots}
        described = {"allowed": [*map(os.fsdecode, self.allowed)], "start": os.fsdecode(self.start)}
        write_arrays(path, described, arrays)

    @classmethod
    def open(cls, path: Path) -> "Listing":
        """Map a list that `save` has written."""
        from vitrail.data.index import map_arrays

        described, arrays = map_arrays(path)
        return cls(
            names=Names(arrays["blob"], arrays["offsets"]),
            roots=arrays["roots"],
            allowed=tuple(map(os.fsencode, described["allowed"])),
            start=os.fsencode(described["start"]),
        )


def list_images(words: Sequence[str], stdin: Callable[[], bytes]) -> Listing:
    """List what the words stand for, reading `stdin` where asked; a word that stands for nothing is refused."""
    collector = _Collector(alone=len(words) == 1)
    for word in words:
        if word == "-":
            collector.add_lines(stdin(), "stdin")
        elif word.startswith("@"):
            collector.add_lines(read_bytes(path_of(word[1:], "images"), LIST_BYTES), word[1:])
        elif os.path.isdir(word):  # noqa: PTH112
            collector.add_folder(Path(word))
        elif os.path.isfile(word):  # noqa: PTH113
            collector.add(os.fsencode(word), _ANYWHERE)
        elif os.path.lexists(word):
            raise InputError(f"{word} is neither a file nor a folder.")
        elif glob.has_magic(word):
            collector.add_pattern(word)
        else:
            raise InputError(f"{word}: {missing(word)}")
    if not len(collector.names):
        raise InputError(f"{', '.join(words)} names no images; give files, folders, patterns, @LIST or - for stdin.")
    return collector.listing()


class _Collector:
    """What was listed so far."""

    def __init__(self, *, alone: bool) -> None:
        self.names, self.roots = NamesBuilder(), array("i")
        self.start = os.getcwdb()  # noqa: PTH109
        self.allowed: dict[bytes, int] = {}
        self.seen: set[bytes] = set()
        self.alone = alone
        self.twice = 0
        self.ignored: list[Skipped] = []

    def add(self, path: bytes, root: bytes, *, check: bool = True) -> None:
        """Note one file, unless it is there already."""
        if check:
            folder, name = os.path.split(os.path.join(self.start, path))  # noqa: PTH118
            real = os.path.join(real_folder(folder), name)  # noqa: PTH118
            if real in self.seen:
                self.twice += 1
                return
            self.seen.add(real)
        self.names.add(path.removeprefix(b"./"))
        self.roots.append(self.allowed.setdefault(root, len(self.allowed)))

    def add_folder(self, folder: Path) -> None:
        """Note every image below a folder; a folder alone names nothing twice."""
        paths, ignored = find_images(folder)
        self.ignored += ignored
        (root,) = real_folders(folder)
        for path in paths:
            self.add(path, root, check=not self.alone)

    def add_pattern(self, pattern: str) -> None:
        """Note the images that a pattern finds below its fixed part."""
        (root,) = real_folders(_fixed(pattern))
        matches = sorted(map(os.fsencode, matching(pattern)))
        before = len(self.names) + self.twice
        for path in matches:
            if not is_inside(os.path.realpath(path), (root,)):
                self.ignored.append((os.fsdecode(path), "a link to a place outside of the pattern"))
            elif os.path.isdir(path):  # noqa: PTH112
                self._add_inner(path, root, deep="**" in pattern)
            elif is_image(os.fsdecode(path)):
                self.add(path, root)
        if len(self.names) + self.twice == before:
            raise InputError(f"{pattern} finds no images, only {len(matches)} others; give another pattern.")

    def _add_inner(self, folder: bytes, root: bytes, *, deep: bool) -> None:
        if deep:  # the pattern itself goes through folders
            return
        paths, ignored = find_images(Path(os.fsdecode(folder)), needed=False)
        self.ignored += ignored
        for path in paths:
            self.add(path, root)

    def add_lines(self, text: bytes, where: str) -> None:
        """Note the files that a text lists; whether they are there shows when they are read."""
        before = len(self.names) + self.twice
        zeros = b"\0" in text
        for line in re.finditer(rb"[^\0]+" if zeros else rb"[^\n]+", text):  # never all at once: there may be millions
            if path := line[0] if zeros else line[0].removesuffix(b"\r"):
                self.add(path, _ANYWHERE)
        if len(self.names) + self.twice == before:
            raise InputError(f"{where} lists no files; write the path of an image on each line.")

    def listing(self) -> Listing:
        """Return what was listed."""
        notes = []
        if self.twice:
            notes.append(f"{self.twice} images were named more than once; each is answered once.")
        if self.ignored:
            notes.append(f"{len(self.ignored)} links were not followed: {named(self.ignored)}.")
        return Listing(
            names=self.names.build(),
            roots=np.frombuffer(self.roots, np.int32),
            allowed=tuple(self.allowed),
            start=self.start,
            notes=tuple(notes),
        )


def _fixed(pattern: str) -> Path:
    """Return the folder that a pattern starts from: the part before its first wildcard."""
    parts = Path(pattern).parts
    first = next(place for place, part in enumerate(parts) if glob.has_magic(part))
    return Path(*parts[:first])
