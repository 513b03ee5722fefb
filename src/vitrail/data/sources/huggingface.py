"""A folder that Hugging Face's `save_to_disk` wrote: arrow files, mapped into memory and read in place (extra `hf`).

    FOLDER/dataset_dict.json                 {"splits": ["train", "test"]}; without it, FOLDER is one pile
    FOLDER/train/state.json                  names the arrow files
    FOLDER/train/dataset_info.json           the features, with class names
    FOLDER/train/data-00000-of-00001.arrow

Their library is not needed, nothing is fetched, and images are decoded by ours.
"""

import json
import os
import struct
from pathlib import Path
from typing import Any

import numpy as np

from vitrail.base.errors import InputError
from vitrail.base.extras import require
from vitrail.base.limits import ARRAY_GROWTH, check_unpacked
from vitrail.base.reading import check_regular, read_json
from vitrail.data.sources.files import digest_rows, is_file_in
from vitrail.data.sources.pile import Codes, Pile, split_of
from vitrail.data.sources.tables import Labels, find_columns, image_bytes, in_file, listed_classes

_PURPOSE = "reading a saved Hugging Face data set"


def is_saved(folder: Path) -> bool:
    """Return whether `save_to_disk` wrote a folder."""
    return any(is_file_in(folder, folder / name) for name in ("dataset_dict.json", "state.json"))


class ArrowPictures:
    """Images in the rows of arrow files."""

    def __init__(self, files: tuple[Path, ...], columns: tuple[str, ...], lengths: list[int]) -> None:
        self.files, self.columns = files, columns
        self.ends = np.cumsum(lengths)
        self._tables: dict[int, Any] = {}

    def __len__(self) -> int:
        """Count the images."""
        return int(self.ends[-1]) if len(self.ends) else 0

    def _place(self, row: int) -> tuple[int, int]:
        file = int(np.searchsorted(self.ends, row, side="right"))
        return file, row - (int(self.ends[file - 1]) if file else 0)

    def name(self, row: int) -> str:
        """Return the file and the row in it."""
        file, at = self._place(row)
        return f"{self.files[file]}[{at}]"

    def digest(self, rows: Codes) -> bytes:
        """Digest which rows they are, and the sizes and times of the files."""
        return digest_rows(self.files, rows)

    def read(self, row: int) -> bytes:
        """Read one image."""
        file, at = self._place(row)
        if file not in self._tables:
            self._tables[file] = _table(self.files[file])
        return image_bytes(self._tables[file].column(self.columns[file])[at])

    def __getstate__(self) -> dict[str, object]:
        """Leave mapped files behind: another process maps its own."""
        return self.__dict__ | {"_tables": {}}


def open_saved(folder: Path) -> Pile:
    """Index a saved data set: its labels are read, its images are not."""
    arrow = require("pyarrow", extra="hf", purpose=_PURPOSE)
    labels, files, columns = Labels(str(folder)), [], []
    listed, lengths = None, []
    for split, place in _places(folder):
        for path in _arrow_files(place, folder):
            table = _table(path)
            image, label = find_columns(table.schema, arrow, str(path))
            labels.add(None if label is None else table.column(label), len(table), arrow)
            listed = listed or _classes(place, folder, label) or listed_classes(table.schema.metadata, label)
            files.append(path)
            columns.append(image)
            lengths.append((split, len(table)))
    if not files:
        raise InputError(f"{folder} has no arrow files; save the data set again.")
    pictures = ArrowPictures(tuple(files), tuple(columns), [length for _, length in lengths])
    return labels.pile(pictures, listed, lengths)


def _places(folder: Path) -> list[tuple[str | None, Path]]:
    """Return the splits and their folders."""
    if not is_file_in(folder, folder / "dataset_dict.json"):
        return [(None, folder)]
    splits = _json(folder / "dataset_dict.json", folder).get("splits")
    if not isinstance(splits, list) or not splits or not all(_is_plain(name) for name in splits):
        raise InputError(f"{folder / 'dataset_dict.json'} does not list splits by name; save the data set again.")
    return [(split_of(name) or name, folder / name) for name in splits]


def _arrow_files(place: Path, folder: Path) -> list[Path]:
    """Return the arrow files that a split names, all of them inside that folder."""
    state = _json(place / "state.json", folder)
    if state.get("_indices_data_files") or state.get("_indices_files"):
        raise InputError(
            f"{place} keeps a selection of rows apart from them; call flatten_indices() and save it again."
        )
    listed = state.get("_data_files")
    entries = listed if isinstance(listed, list) else []
    names = [str(entry.get("filename", "")) for entry in entries if isinstance(entry, dict)]
    if not names or not all(map(_is_plain, names)):
        raise InputError(f"{place / 'state.json'} does not name arrow files in this folder; save the data set again.")
    paths = [place / name for name in names]
    for path in paths:
        if not is_file_in(folder, path):
            raise InputError(f"{path}, which {place / 'state.json'} names, is not there.")
    return paths


def _is_plain(name: Any) -> bool:
    """Return whether a name stays in its folder."""
    return isinstance(name, str) and name not in ("", ".", "..") and os.path.basename(name) == name  # noqa: PTH119


def _json(path: Path, folder: Path) -> dict[str, Any]:
    if not is_file_in(folder, path):
        raise InputError(f"{path} is not there, or leads out of {folder}; save the data set again.")
    table = read_json(path)
    return table if isinstance(table, dict) else {}


def _classes(place: Path, folder: Path, label: str | None) -> tuple[str, ...] | None:
    """Return the class names in dataset_info.json."""
    path = place / "dataset_info.json"
    if not is_file_in(folder, path):
        return None
    return listed_classes({b"huggingface": json.dumps({"info": _json(path, folder)}).encode()}, label)


def _table(path: Path) -> Any:
    """Map the record batches of an arrow file."""
    arrow = require("pyarrow", extra="hf", purpose=_PURPOSE)
    ipc = require("pyarrow.ipc", extra="hf", purpose=_PURPOSE)
    check_regular(path)
    try:
        batches = []
        _refuse_compressed(path, arrow, ipc)
        with ipc.open_stream(arrow.memory_map(str(path))) as stream:
            schema = stream.schema
            for batch in stream:
                batch.validate(full=True)  # offsets that lead out of the file would end the process
                batches.append(batch)
        table = arrow.Table.from_batches(batches, schema)
    except (arrow.ArrowException, OSError, ValueError, struct.error) as error:
        raise in_file(error, path) from None
    check_unpacked(str(path), path.stat().st_size, table.nbytes, ARRAY_GROWTH, InputError)
    return table


def _refuse_compressed(path: Path, arrow: Any, ipc: Any) -> None:
    """Refuse record batches that are compressed, which `save_to_disk` never writes and which unpack to any size."""
    for message in ipc.MessageReader.open_stream(arrow.memory_map(str(path))):
        batch = _Table(message.metadata.to_pybytes()).inner(_HEADER)
        batch = batch.inner(_DATA) if message.type == "dictionary" else batch
        if message.type in ("dictionary", "record batch") and batch.place(_COMPRESSION):
            raise InputError(f"{path} is compressed, and is not read; save the data set again with save_to_disk.")


# Numbers of fields in Arrow's Message.fbs: of a message, of a dictionary batch, of a record batch.
_HEADER, _DATA, _COMPRESSION = 2, 1, 3


class _Table:
    """A table of a flatbuffer that Arrow has checked already: what its fields are, and where."""

    def __init__(self, data: bytes, at: int = 0) -> None:
        """Begin at a place with the distance to the table."""
        self.data = data
        self.at = at + struct.unpack_from("<I", data, at)[0]

    def place(self, field: int) -> int:
        """Return where a field is; 0 for one that is absent."""
        fields = self.at - struct.unpack_from("<i", self.data, self.at)[0]
        if 4 + 2 * field >= struct.unpack_from("<H", self.data, fields)[0]:
            return 0
        offset = struct.unpack_from("<H", self.data, fields + 4 + 2 * field)[0]
        return self.at + offset if offset else 0

    def inner(self, field: int) -> "_Table":
        """Return the table that a field refers to."""
        return _Table(self.data, self.place(field))
