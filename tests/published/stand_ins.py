"""Small models with random weights that lie in the cache as published ones do after `vitrail pull`."""

from pathlib import Path

from vitrail.published.cache import RECORD, Cache
from vitrail.published.pull import source_of
from vitrail.published.record import Record, facts_of, write_record


def pretend_pulled(name: str, path: Path) -> None:
    """Record a folder or file as the published model of this name."""
    source, cache = source_of(name), Cache.usual()
    folder = path if path.is_dir() else path.parent
    names = [file.name for file in path.iterdir()] if path.is_dir() else [path.name]
    record = Record(
        name=source.name,
        place=source.place,
        folder=str(folder),
        main="" if path.is_dir() else path.name,
        files={file: facts_of(folder / file) for file in names},
    )
    cache.home(source).mkdir(parents=True)
    write_record(record, cache.home(source) / RECORD)
