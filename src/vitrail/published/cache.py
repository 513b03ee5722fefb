"""The folder of pulled models: what is there, what is unfinished, and the digests that sources are held to.

VITRAIL_CACHE/pulled/KEY/pulled.json     the record of a model, written last
VITRAIL_CACHE/pulled/KEY/FILE            its weights, unless they lie in the cache of Hugging Face
VITRAIL_CACHE/pulled/KEY/FILE.part       what was received of an unfinished download, and FILE.part.json
VITRAIL_CACHE/digests/KEY.json           stays when a model is removed
"""

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from vitrail.base.errors import InputError, VitrailError, WriteError
from vitrail.base.files import cache_folder, hold
from vitrail.base.notes import Note
from vitrail.base.reading import read_json
from vitrail.published.record import Record, read_record
from vitrail.published.source import Source

RECORD = "pulled.json"
WAIT = 0.2
"""Seconds between two looks at a lock."""


@dataclass(frozen=True, kw_only=True)
class Unfinished:
    """A download that was stopped."""

    name: str
    folder: Path
    received: int
    """Bytes."""


@dataclass(frozen=True, kw_only=True)
class Cache:
    """Where pulled models lie."""

    folder: Path

    @classmethod
    def usual(cls) -> "Cache":
        """Return the user's own."""
        return cls(folder=cache_folder())

    def home(self, source: Source) -> Path:
        """Return the folder of one model."""
        return self.folder / "pulled" / source.key

    def digests(self, source: Source) -> Path:
        """Return the file of the digests that a source is held to."""
        return self.folder / "digests" / f"{source.key}.json"

    def record(self, source: Source) -> Record | None:
        """Return the record of a model that is there with all its files."""
        record = read_record(self.home(source) / RECORD)
        return record if record is not None and record.place == source.place and record.whole() else None

    @contextmanager
    def locked(self, source: Source, note: Note) -> Iterator[None]:
        """Make room for a model, and keep other processes away from it; wait for one that is there."""
        home = self.home(source)
        try:
            home.mkdir(parents=True, exist_ok=True)
            self.digests(source).parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise WriteError(
                f"{home} cannot be made ({error.strerror}); set VITRAIL_CACHE to a folder that can be written to."
            ) from None
        waits = 0

        def wait() -> None:
            nonlocal waits
            if not waits:
                note(f"another process is working on {source.name}; waiting for it.")
            waits += 1
            time.sleep(WAIT)

        with hold(home.with_name(f"{home.name}.lock"), waiting=wait):
            home.mkdir(exist_ok=True)  # who held the lock may have removed it
            for part in home.glob(f".{RECORD}.*.part"):  # a record that a kill or a full disk left half written
                part.unlink(missing_ok=True)
            yield

    def records(self) -> list[Record]:
        """List the models that were pulled, also those whose files are gone, by name."""
        records = (read_record(path) for path in (self.folder / "pulled").glob(f"*/{RECORD}"))
        return sorted((record for record in records if record is not None), key=lambda record: record.name)

    def unfinished(self) -> list[Unfinished]:
        """List downloads that were stopped."""
        rows = []
        for tag in sorted((self.folder / "pulled").glob("*/*.part.json")):
            part = tag.with_suffix("")
            try:
                name = str(read_json(tag)["name"])
                rows.append(Unfinished(name=name, folder=tag.parent, received=part.stat().st_size))
            except (OSError, VitrailError, TypeError, KeyError):
                continue
        return rows

    def remove(self, source: Source, note: Note) -> int:
        """Delete a model or what was received of it, and return how many bytes that were; its digests are kept."""
        home = self.home(source)
        if not home.is_dir():
            raise InputError(f"{source.name} is not in the cache {self.folder}; `vitrail pull` can list what is.")
        with self.locked(source, note):
            freed = sum(path.stat().st_size for path in home.iterdir() if path.is_file() and path.name != RECORD)
            shutil.rmtree(home)
        return freed
