"""Get published models onto this machine, list them, and remove them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, overload

from vitrail.base.notes import Note, logged
from vitrail.base.progress import Progress, silent
from vitrail.base.readable import in_bytes
from vitrail.base.table import Table, Tabular
from vitrail.published.cache import Cache
from vitrail.published.download import Patience
from vitrail.published.pull import fetch, source_of
from vitrail.published.record import Record


@dataclass(frozen=True, kw_only=True, repr=False)
class Pulled(Tabular):
    """A published model on this machine."""

    name: str
    """What it is called; every verb takes this for its path."""
    path: Path | None
    """The file or folder that is loaded; None while its download is unfinished."""
    source: str | None
    """Where it was published; None while its download is unfinished."""
    size: int
    """Bytes of its files."""
    digests: dict[str, str]
    """SHA-256 of each file, to which later downloads are held."""
    licence: str | None = None
    """Its licence, where the catalogue knows it."""
    revision: str | None = None
    """The commit of its repository."""
    pulled: str | None = None
    """When, in UTC."""
    fresh: bool = False
    """Whether this call downloaded it."""

    @property
    def state(self) -> str:
        """Whether it can be used: `ready`, `unfinished`, or `files missing`."""
        return "unfinished" if self.path is None else "ready" if self.path.exists() else "files missing"

    def to_dict(self) -> dict[str, Any]:
        """Return everything as values that JSON can hold."""
        return {
            "name": self.name,
            "path": None if self.path is None else str(self.path),
            "source": self.source,
            "size": self.size,
            "digests": dict(self.digests),
            "licence": self.licence,
            "revision": self.revision,
            "pulled": self.pulled,
            "state": self.state,
            "fresh": self.fresh,
        }

    def sentences(self) -> tuple[str, ...]:
        """Write what it is and where it lies."""
        came = "pulled" if self.fresh else "already here"
        licence = f", {self.licence}" if self.licence else ""
        return (f"{self.name}: {came}, {in_bytes(self.size)}{licence}; {self.path}",)

    def tables(self) -> list[Table]:
        """Return the sentences."""
        return [Table(notes=self.sentences())]


@dataclass(frozen=True, kw_only=True, repr=False)
class PulledList(Tabular, Sequence[Pulled]):
    """The published models on this machine."""

    rows: tuple[Pulled, ...]
    """The models, by name; unfinished downloads last."""
    folder: Path
    """The cache."""

    def __len__(self) -> int:
        """Count them."""
        return len(self.rows)

    def __iter__(self) -> Iterator[Pulled]:
        """Walk over them."""
        return iter(self.rows)

    @overload
    def __getitem__(self, at: int) -> Pulled: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Pulled]: ...
    def __getitem__(self, at: int | slice) -> Pulled | Sequence[Pulled]:
        """Return one by its place."""
        return self.rows[at]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as values that JSON can hold."""
        return {"folder": str(self.folder), "models": [row.to_dict() for row in self.rows]}

    def tables(self) -> list[Table]:
        """Return one table with a row for each model."""
        if not self.rows:
            return [Table(notes=(f"no models were pulled into {self.folder}.",))]
        cells = tuple((row.name, in_bytes(row.size), row.state, (row.pulled or "")[:10]) for row in self.rows)
        return [Table(title=f"Models in {self.folder}", columns=("name", "size", "state", "pulled"), rows=cells)]


def pull(name: str, *, renew: bool = False, progress: Progress = silent, note: Note = logged) -> Pulled:
    """Get a published model onto this machine, unless it is there; afterwards its name stands for its path.

        >>> vitrail.pull("dinov2-S/15")
        Traceback (most recent call last):
        vitrail.base.errors.ConfigError: there is no published model 'dinov2-S/15'; ... Did you mean dinov2-S/14 ...?

    `name` is one of `vitrail.list_published()`, `hf:OWNER/NAME` or `hf:OWNER/NAME@REVISION` for a repository of Hugging
    Face (which needs `pip install 'vitrail[hub]'`), or an https address. This is the only function that uses a network.
    An interrupted download is resumed, sizes and SHA-256 are checked, and the digests of the first download are held
    from then on; `renew` downloads again, and holds what comes. Of several processes one downloads, and the others
    wait for it.
    """
    source = source_of(name)
    record, fresh = fetch(source, Cache.usual(), renew=renew, patience=Patience(), progress=progress, note=note)
    return _of(record, name=source.name, fresh=fresh)


def list_pulled() -> PulledList:
    """List the published models on this machine, and downloads that were stopped.

    >>> [row.name for row in vitrail.list_pulled() if row.state == "unfinished"]
    []
    """
    cache = Cache.usual()
    stopped = (
        Pulled(name=row.name, path=None, source=None, size=row.received, digests={}) for row in cache.unfinished()
    )
    rows = (*(_of(record, name=record.name) for record in cache.records()), *stopped)
    return PulledList(rows=rows, folder=cache.folder)


def remove_pulled(name: str, *, note: Note = logged) -> int:
    """Remove a pulled model, or what was received of it, from the cache, and return how many bytes that freed.

    Its digests stay, so that it cannot change unnoticed when it is pulled again. Files of a repository of Hugging Face
    lie in the cache of Hugging Face, which other programs share, and stay there.

    >>> vitrail.remove_pulled("dinov2-S/14")
    Traceback (most recent call last):
    vitrail.base.errors.InputError: dinov2-S/14 is not in the cache ...
    """
    source, cache = source_of(name), Cache.usual()
    record = cache.record(source)
    freed = cache.remove(source, note)
    if record is not None and source.repository is not None:
        note(f"{source.name} is forgotten; its files stay in the cache of Hugging Face, in {record.folder}.")
    return freed


def _of(record: Record, *, name: str, fresh: bool = False) -> Pulled:
    return Pulled(
        name=name,
        path=record.path,
        source=record.place,
        size=record.size,
        digests={file: facts.sha256 for file, facts in record.files.items()},
        licence=record.licence,
        revision=record.revision,
        pulled=record.pulled,
        fresh=fresh,
    )
