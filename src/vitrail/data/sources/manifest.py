"""CSV, TSV and JSON-lines files of path, label and split.

The first line names the columns: path (or file, filename, image), label (class, target), split (subset); others are
not read. Labels that are all whole numbers are indices of classes, but names in a column `class_name`. Paths are
relative to the file's folder, or to `root`, and must stay inside it.
"""

import csv
import os
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

import numpy as np

from vitrail.base.errors import InputError
from vitrail.base.files import atomic_write
from vitrail.base.reading import parse_json, text_lines
from vitrail.base.rows import unguarded, write_csv
from vitrail.data.budget import Skipped
from vitrail.data.names import NamesBuilder
from vitrail.data.sources import columns
from vitrail.data.sources.files import Files, real_folders
from vitrail.data.sources.pile import NO_SPLIT, Codebook, Pile, is_number, sort_classes, split_of
from vitrail.data.sources.present import missing_files
from vitrail.data.sources.repeats import check_repeats

_JSON = (".jsonl", ".ndjson")
SUFFIXES = (".csv", ".tsv", *_JSON)
_MOST_SPLITS = 100
_COLUMNS = {
    "path": ("path", "file", "filename", "image", "file_name", "filepath", "image_path"),
    "label": ("label", "class", "target", "class_name"),
    "split": ("split", "subset"),
}

Row = tuple[int, str, str, str]
"""The number of a line, and its path, label and split."""


def open_manifest(path: Path, *, root: Path | None = None) -> Pile:
    """Read a list of images; rows whose file is missing are charged to the budget."""
    folder = path.parent if root is None else root
    if not folder.is_dir():
        raise InputError(f"there is no folder {folder} for the paths of {path} to begin at.")
    prefixes = tuple(os.fsencode(os.path.join(at, "")) for at in _spellings(folder))  # noqa: PTH118
    is_json = path.suffix.lower() in _JSON
    rows = None if is_json else columns.read_plain(path, _places, prefixes)
    if rows is None:
        rows = _read_rows(path, folder, _json_rows(path) if is_json else _csv_rows(path))
    if not len(rows.paths) and not rows.broken:
        raise InputError(f"{path} lists no images.")
    there, missing = missing_files(folder, rows.paths)
    checked = check_repeats(rows.paths, rows.labels, rows.splits, str(path))
    paths, labels, parts = rows.paths, rows.labels, rows.splits
    if missing or not checked.kept.all():
        good = there[checked.kept[there]]
        paths, labels, parts = paths.take(good), labels[good], parts[good]
    names, targets, numeric = sort_classes(rows.label_words, labels, str(path), numbers=not _are_names(path))
    split_names, splits = _canonical(path, rows.split_words, parts)
    return Pile(
        pictures=Files(folder, paths, real_folders(folder)),
        targets=targets,
        names=names,
        numeric=numeric,
        splits=splits,
        split_names=split_names,
        broken=(*rows.broken, *missing, *checked.broken),
        notes=(*rows.notes, *checked.notes, *_notes(path, splits)),
    )


def write_manifest(path: Path, rows: Iterable[tuple[Path, str | None, str | None]], *, numbers: bool = True) -> None:
    """Write a CSV of image files, labels and splits that `open` reads again.

    Paths are relative to the folder of the manifest when all of them lie inside it, and absolute otherwise: then
    `open` needs a `root` above them. Labels that are all whole numbers are indices of classes if `numbers`, and names
    otherwise.
    """
    listed = [(Path(os.path.abspath(file)), label or "", split or "") for file, label, split in rows]  # noqa: PTH100
    folder = Path(os.path.abspath(path.parent))  # noqa: PTH100
    inside = all(file.is_relative_to(folder) for file, _, _ in listed)
    names = not numbers and all(is_number(label) for _, label, _ in listed if label)
    header = ("path", "class_name" if names else "label", "split")
    paths = ((image.relative_to(folder) if inside else image).as_posix() for image, _, _ in listed)
    with atomic_write(path) as file:
        write_csv(file, chain([header], ((name, *rest) for name, (_, *rest) in zip(paths, listed, strict=True))))


def _spellings(folder: Path) -> dict[str, None]:
    """Return the ways in which an absolute path can begin inside a folder."""
    return dict.fromkeys([os.path.abspath(folder), os.path.realpath(folder)])  # noqa: PTH100


def _places(path: Path, header: list[str]) -> dict[str, int]:
    """Find the columns by their names."""
    titles = [name.strip().lower() for name in header]
    if twice := [name for names in _COLUMNS.values() for name in names if titles.count(name) > 1]:
        raise InputError(f"{path} has {titles.count(twice[0])} columns called {twice[0]}; rename all but one of them.")
    places = {
        what: titles.index(name) for what, names in _COLUMNS.items() for name in reversed(names) if name in titles
    }
    if "path" not in places:
        raise InputError(
            f"{path} has no column of paths: its first line must name one of {', '.join(_COLUMNS['path'])}, and names "
            f"{', '.join(header) or 'nothing'}."
        )
    return places


def _are_names(path: Path) -> bool:
    """Return whether the labels of a CSV are in a column of names, which are names even where they are numbers."""
    if path.suffix.lower() in _JSON:
        return False
    header = next(csv.reader(text_lines(path), delimiter=columns.delimiter(path)))
    at = _places(path, header).get("label")
    return at is not None and header[at].strip().lower() == "class_name"


def _csv_rows(path: Path) -> Iterator[Row]:
    """Read the rows of a CSV with quotes, or with lines of unequal length."""
    reader = csv.reader(text_lines(path), delimiter=columns.delimiter(path))
    try:
        places = _places(path, next(reader, []))
        for row in reader:
            if row:
                cells = {what: unguarded(row[at]) for what, at in places.items() if at < len(row)}
                yield reader.line_num, cells.get("path", ""), cells.get("label", ""), cells.get("split", "")
    except csv.Error as error:
        raise InputError(f"{path} is not a CSV from line {reader.line_num} on: {error}.") from None
    except UnicodeDecodeError as error:
        raise columns.not_utf8(path, error) from None


def _json_rows(path: Path) -> Iterator[Row]:
    """Read the rows of JSON lines."""
    try:
        for number, line in enumerate(text_lines(path), start=1):
            if not line.strip():
                continue
            row = parse_json(line, f"line {number} of {path}")
            if not isinstance(row, dict):
                raise InputError(f'line {number} of {path} is not an object with a path; write {{"path": ...}}.')
            places = _places(path, list(row))
            values = list(row.values())
            cells = {what: values[at] for what, at in places.items() if values[at] is not None}
            if odd := [what for what, cell in cells.items() if type(cell) not in (str, int)]:
                raise InputError(f"line {number} of {path} has a {odd[0]} that is neither text nor a whole number.")
            yield number, str(cells.get("path", "")), str(cells.get("label", "")), str(cells.get("split", ""))
    except UnicodeDecodeError as error:
        raise columns.not_utf8(path, error) from None


def _read_rows(path: Path, folder: Path, rows: Iterator[Row]) -> columns.Columns:
    """Collect rows one by one."""
    paths, labels, splits = NamesBuilder(), Codebook(str(path)), Codebook(str(path))
    broken: list[Skipped] = []
    prefixes = tuple(os.path.join(at, "") for at in _spellings(folder))  # noqa: PTH118
    for number, name, label, split in rows:
        prefix = next((prefix for prefix in prefixes if name.startswith(prefix)), "")
        inner = name[len(prefix) :]
        if problem := columns.problem_with(inner):
            broken.append((name or f"line {number}", problem))
            continue
        paths.add(inner.encode())
        labels.add(label)
        splits.add(split)
    return columns.Columns(
        paths=paths.build(),
        labels=np.array(labels.values, np.int32),
        label_words=tuple(labels.codes),
        splits=np.array(splits.values, np.int32),
        split_words=tuple(splits.codes),
        broken=broken,
        notes=labels.notes(),
    )


def _canonical(path: Path, words: tuple[str, ...], codes: np.ndarray) -> tuple[tuple[str, ...], np.ndarray | None]:
    """Return splits by their usual names; None when no row names one."""
    if not words:
        return (), None
    named = [split_of(word) or word for word in words]
    names = tuple(dict.fromkeys(named))
    if len(names) > _MOST_SPLITS:
        raise InputError(
            f"{path} names {len(names)} splits, such as {', '.join(names[:3])}; at most {_MOST_SPLITS} are read, and "
            "the column is probably another one."
        )
    table = np.array([*(names.index(name) for name in named), NO_SPLIT], np.int8)
    return names, table[codes]


def _notes(path: Path, splits: np.ndarray | None) -> tuple[str, ...]:
    if splits is None or not (without := int((splits == NO_SPLIT).sum())):
        return ()
    return (f"{without} rows of {path} name no split and are in none.",)
