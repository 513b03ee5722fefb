"""A published model comes onto this machine: once, checked, and the same for every process."""

from dataclasses import replace
from datetime import UTC, datetime

from vitrail.base.errors import ConfigError, NetworkError
from vitrail.base.notes import Note
from vitrail.base.progress import Progress
from vitrail.published.bundled import BACKBONE
from vitrail.published.cache import RECORD, Cache
from vitrail.published.catalogue import nearest
from vitrail.published.download import Download, Patience
from vitrail.published.record import FileFacts, Record, read_digests, write_digests, write_record
from vitrail.published.source import Source, parse_source


def source_of(name: str) -> Source:
    """Return where a name leads, or refuse it with the names that are near it."""
    if name == BACKBONE:
        raise ConfigError("the backbone is part of the package: its name stands for it without being pulled.")
    source = parse_source(name) if isinstance(name, str) else None
    if source is None:
        raise ConfigError(
            f"there is no published model {name!r}; `vitrail models` can list them, and hf:OWNER/NAME or an "
            f"https address is taken too.{nearest(str(name))}"
        )
    return source


def fetch(
    source: Source, cache: Cache, *, renew: bool, patience: Patience, progress: Progress, note: Note
) -> tuple[Record, bool]:
    """Return the record of a model, and whether it was downloaded now; one that is there touches no network.

    The digests of the first download are kept from then on; `renew` downloads again, and keeps the new ones.
    """
    with cache.locked(source, note):
        record = cache.record(source)
        if record is not None and not renew:
            return record, False
        digests = {} if renew else read_digests(cache.digests(source))
        if source.entry is not None and source.entry.gated:
            note(f"{source.name} is under the {source.entry.licence}, which has to be accepted on its page first.")
        record = (_from_hub if source.repository else _from_address)(source, cache, digests, patience, progress, note)
        write_digests({name: facts.sha256 for name, facts in record.files.items()}, cache.digests(source))
        write_record(record, cache.home(source) / RECORD)
        return record, True


def _from_address(
    source: Source, cache: Cache, digests: dict[str, str], patience: Patience, progress: Progress, note: Note
) -> Record:
    home, name = cache.home(source), source.file

    def check(facts: FileFacts) -> None:
        pinned = None if source.entry is None else source.entry.sha256
        if pinned is not None and not facts.sha256.startswith(pinned):
            raise NetworkError(
                f"{source.name} has the SHA-256 {facts.sha256[:16]}, but {pinned[:16]} was published; it is not taken."
            )
        _check_digest(source, name, facts, digests)

    download = Download(source.place, home / name, title=source.name, patience=patience, note=note)
    facts = download.run(progress, size=None if source.entry is None else source.entry.size, check=check)
    return _record(source, folder=str(home), main=name, files={name: facts})


def _from_hub(
    source: Source,
    cache: Cache,  # noqa: ARG001 - the files lie in the cache of Hugging Face
    digests: dict[str, str],
    patience: Patience,  # noqa: ARG001 - it has its own
    progress: Progress,  # noqa: ARG001 - and shows its own
    note: Note,
) -> Record:
    from vitrail.published.hub import fetch_snapshot

    assert source.repository is not None  # noqa: S101 - asked by the caller
    repository, revision = source.repository
    snapshot = fetch_snapshot(repository, revision, title=source.name, note=note)
    for name, facts in snapshot.files.items():
        _check_digest(source, name, facts, digests)
    record = _record(source, folder=str(snapshot.folder), main=snapshot.main, files=snapshot.files)
    return replace(record, revision=snapshot.revision)


def _check_digest(source: Source, name: str, facts: FileFacts, digests: dict[str, str]) -> None:
    if name in digests and digests[name] != facts.sha256:
        raise NetworkError(
            f"{source.name}: {name} has the SHA-256 {facts.sha256[:16]}, but had {digests[name][:16]} when it was "
            "first pulled here: what is published has changed, or was damaged; if the change is expected, give "
            "`renew=True`."
        )


def _record(source: Source, *, folder: str, main: str, files: dict[str, FileFacts]) -> Record:
    return Record(
        name=source.name,
        place=source.place,
        folder=folder,
        main=main,
        files=files,
        licence=None if source.entry is None else source.entry.licence,
        pulled=datetime.now(UTC).isoformat(timespec="seconds"),
    )
