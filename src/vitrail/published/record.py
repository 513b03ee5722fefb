"""What is written down about a pulled model: where it came from, what it consists of, where it lies."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vitrail.base.errors import InputError, VitrailError
from vitrail.base.files import write_whole
from vitrail.base.reading import read_json
from vitrail.base.settings import from_dict, to_dict


@dataclass(frozen=True, kw_only=True)
class FileFacts:
    """One file as it was checked after its download."""

    size: int
    """Bytes."""
    sha256: str
    """Digest of the bytes."""


@dataclass(frozen=True, kw_only=True)
class Record:
    """A model that was pulled."""

    name: str
    """What the user called it when it was pulled."""
    place: str
    """The address, or hf:OWNER/NAME[@REVISION]."""
    folder: str
    """Where its files lie: in our cache, or in that of Hugging Face."""
    main: str
    """What is loaded, below `folder`: a file, or nothing for the folder itself."""
    files: dict[str, FileFacts]
    """Every file of it."""
    revision: str | None = None
    """The commit of its repository."""
    licence: str | None = None
    """The licence, where known."""
    pulled: str = ""
    """When, in UTC."""

    @property
    def path(self) -> Path:
        """What is loaded."""
        return Path(self.folder) / self.main

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(facts.size for facts in self.files.values())

    def whole(self) -> bool:
        """Return whether all its files are there, with the sizes that they had."""
        return all(_size(Path(self.folder) / name) == facts.size for name, facts in self.files.items())


def facts_of(path: Path) -> FileFacts:
    """Measure a file."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return FileFacts(size=path.stat().st_size, sha256=digest)


def changed_files(record: Record) -> list[str]:
    """Name the files whose bytes are not those of the download; every byte is read."""
    return [name for name, facts in record.files.items() if facts_of(Path(record.folder) / name) != facts]


def write_record(record: Record, path: Path) -> None:
    """Write a record, whole or not at all."""
    write_whole(path, f"{json.dumps(to_dict(record), indent=2)}\n".encode())


def read_record(path: Path) -> Record | None:
    """Read a record; None where there is none, or one that cannot be read: then the model is pulled again."""
    try:
        return from_dict(Record, read_json(path), where=str(path)) if path.is_file() else None
    except VitrailError:
        return None


def write_digests(digests: Mapping[str, str], path: Path) -> None:
    """Write the digests that a source is held to."""
    write_whole(path, f"{json.dumps(dict(digests), indent=2)}\n".encode())


def read_digests(path: Path) -> dict[str, str]:
    """Read the digests that a source is held to; none for one that was never pulled."""
    if not path.is_file():
        return {}
    table: Any = read_json(path)
    if not isinstance(table, dict) or not all(isinstance(value, str) for value in table.values()):
        raise InputError(f"{path} is not a table of digests; remove it to record them again.")
    return table


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size if path.is_file() else None
    except OSError:
        return None
