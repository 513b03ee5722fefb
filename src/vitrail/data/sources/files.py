"""Pictures that are files below a folder."""

import errno
import hashlib
import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from vitrail.base.errors import ImageError, did_you_mean
from vitrail.base.files import name_text
from vitrail.base.limits import IMAGE_BYTES
from vitrail.data.names import Names, Rows


@dataclass(frozen=True, eq=False)
class Files:
    """Image files, by paths relative to a folder; whatever leads out of the allowed folders is not read."""

    root: Path
    """The folder, as the user named it."""
    paths: Names
    """Paths relative to `root`."""
    allowed: tuple[bytes, ...]
    """Real paths of the folders that may be read."""

    def __len__(self) -> int:
        """Count the files."""
        return len(self.paths)

    def name(self, row: int) -> str:
        """Return the path of a file."""
        return os.path.normpath(os.path.join(name_text(self.root), self.paths.text(row)))  # noqa: PTH118

    def path(self, row: int) -> Path:
        """Return the path of a file, whatever the bytes of its name."""
        return self.root / os.fsdecode(self.paths[row])

    def read(self, row: int) -> bytes:
        """Read a whole file, if it is a plain one inside the allowed folders."""
        return read_inside(os.path.join(os.fsencode(self.root), self.paths[row]), self.allowed)  # noqa: PTH118

    def digest(self, rows: Rows) -> bytes:
        """Digest the paths below the root, sizes and times of files."""
        root, hashed = os.fsencode(self.root) + b"/", hashlib.sha256()
        for row in rows.tolist():
            name = self.paths[row]
            hashed.update(stamp_file(root + name, name))
        return hashed.digest()


def stamp_file(path: bytes, name: bytes) -> bytes:
    """Return a name with the size and the time of a file, by which a change is recognised."""
    try:
        status = os.stat(path)  # noqa: PTH116
    except OSError:
        return b"%b\0\0" % name
    return b"%b\0%d\0%d\0" % (name, status.st_size, status.st_mtime_ns)


def digest_rows(files: Sequence[Path], rows: Rows) -> bytes:
    """Digest some rows of a few large files, with the sizes and times of the files."""
    hashed = hashlib.sha256(np.ascontiguousarray(rows, np.int64).data)
    for file in files:
        hashed.update(stamp_file(os.fsencode(file), os.fsencode(file.name)))
    return hashed.digest()


def read_inside(path: bytes, allowed: tuple[bytes, ...]) -> bytes:
    """Read a plain file whose real place is below one of the allowed folders."""
    folder, name = os.path.split(path)
    # A remembered path must not follow a change of the working folder.
    folder = os.path.join(os.getcwdb(), folder)  # noqa: PTH109, PTH118
    try:
        handle = _open(os.path.join(real_folder(folder), name), allowed)  # noqa: PTH118
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.EMLINK):
            raise
        handle = _open(os.path.realpath(path), allowed)  # the file itself is a link
    with os.fdopen(handle, "rb") as file:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise ImageError("it is not a plain file.")
        IMAGE_BYTES.check(status.st_size, "it", ImageError)
        return file.read(status.st_size + 1)  # a larger number would allocate memory for it


def _open(real: bytes, allowed: tuple[bytes, ...]) -> int:
    if not is_inside(real, allowed):
        raise ImageError("it is a link to a place outside the given folder, which is not read.")
    # no link may have appeared in between, and a pipe must not block until it has a writer
    return os.open(real, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)


@lru_cache(maxsize=2**14)
def real_folder(folder: bytes) -> bytes:
    """Return the real path of a folder; asking the system for every image would take as long as reading it."""
    return os.path.realpath(folder)


def is_inside(real: bytes, allowed: tuple[bytes, ...]) -> bool:
    """Return whether a real path is one of the allowed folders or below it."""
    return any(real == folder or real.startswith(folder.rstrip(b"/") + b"/") for folder in allowed)


def is_file_in(folder: Path, path: Path) -> bool:
    """Return whether a plain file exists and is really below a folder; a link to elsewhere is not."""
    return path.is_file() and path.resolve().is_relative_to(folder.resolve())


def real_folders(*folders: Path | None) -> tuple[bytes, ...]:
    """Return the real paths of folders that may be read."""
    return tuple(os.fsencode(os.path.realpath(folder)) for folder in folders if folder is not None)


def missing(name: str) -> str:
    """Return the sentence about a missing file, with similar names."""
    if "://" in name:
        return "it is not on this machine, and nothing is fetched; give a file."
    path = Path(name)
    try:
        beside = [entry.name for entry in path.parent.iterdir()]
    except OSError:
        beside = []
    return f"there is no such file.{did_you_mean(path.name, beside)}"
