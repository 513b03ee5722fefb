"""Parquet files with a column of images, read a row group at a time (extra `parquet`).

One file, or a folder of them (`data/` inside it too), with the split in the names: `train-00000-of-00002.parquet`.
Reading in random order reads a whole row group for one image; for training on large data, tar shards are the better
form.
"""

import os
from collections import OrderedDict
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from vitrail.base.errors import ImageError, InputError
from vitrail.base.extras import require
from vitrail.base.limits import ARRAY_GROWTH, check_unpacked
from vitrail.base.reading import check_regular
from vitrail.data.sources.files import digest_rows, is_file_in
from vitrail.data.sources.patterns import split_in
from vitrail.data.sources.pile import Codes, Pile
from vitrail.data.sources.tables import Labels, find_columns, image_bytes, in_file, listed_classes

_GROUPS_KEPT = 4
_PURPOSE = "reading parquet files"
ROW_BYTES = 64
"""What a row takes in memory beside its image: label, class, place in its split, and more while a run begins."""


def files_in(folder: Path) -> list[Path]:
    """Return the parquet files of a folder, or of its `data` folder."""
    for place in (folder, folder / "data"):
        if files := sorted(path for path in place.glob("*.parquet") if is_file_in(folder, path)):
            return files
    return []


class _Reading:
    """The open file of one process; arrow's reader is for one thread at a time, so reading takes the lock."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self.lock = Lock()
        self.files: dict[int, Any] = {}
        self.groups: OrderedDict[int, Any] = OrderedDict()


class ParquetPictures:
    """Images in the rows of parquet files."""

    def __init__(self, files: tuple[Path, ...], columns: tuple[str, ...], groups: np.ndarray, length: int) -> None:
        self.files, self.columns = files, columns
        self.groups = groups
        """For each row group: its first row among all, its file, its number in it."""
        self.length = length
        self._reading = _Reading()

    def __len__(self) -> int:
        """Count the images."""
        return self.length

    def _place(self, row: int) -> tuple[int, int]:
        group = int(np.searchsorted(self.groups[:, 0], row, side="right")) - 1
        return group, row - int(self.groups[group, 0])

    def name(self, row: int) -> str:
        """Return the file and the row in it."""
        group, _ = self._place(row)
        file = int(self.groups[group, 1])
        first = self.groups[self.groups[:, 1] == file, 0].min()
        return f"{self.files[file]}[{row - int(first)}]"

    def digest(self, rows: Codes) -> bytes:
        """Digest which rows they are, and the sizes and times of the files."""
        return digest_rows(self.files, rows)

    def read(self, row: int) -> bytes:
        """Read one image, from a row group that is at hand or is read now."""
        reading = self._reading
        if reading.process != os.getpid():
            reading = self._reading = _Reading()
        group, at = self._place(row)
        with reading.lock:
            if group not in reading.groups:
                while len(reading.groups) >= _GROUPS_KEPT:
                    reading.groups.popitem(last=False)
                reading.groups[group] = self._column(reading, *map(int, self.groups[group, 1:]))
            reading.groups.move_to_end(group)
            cell = reading.groups[group][at]
        return image_bytes(cell)

    def _column(self, reading: _Reading, file: int, group: int) -> Any:
        parquet = require("pyarrow.parquet", extra="parquet", purpose=_PURPOSE)
        try:
            if file not in reading.files:
                reading.files[file] = _opened(self.files[file], self.columns[file], parquet)
            table = reading.files[file].read_row_group(group, columns=[self.columns[file]], use_threads=False)
        except Exception as error:  # arrow has many kinds, and a damaged file can raise any
            raise ImageError(f"its row group cannot be read ({error}).") from None
        return table.column(self.columns[file])

    def __reduce__(self) -> tuple[object, ...]:
        """Leave open files behind: another process opens its own."""
        return ParquetPictures, (self.files, self.columns, self.groups, self.length)


def _opened(path: Path, column: str | None, parquet: Any) -> Any:
    """Open a file whose repeated values stay in a dictionary: written out they could take any amount of memory."""
    metadata = parquet.read_metadata(path)
    leaves = [metadata.schema.column(number) for number in range(metadata.num_columns)]
    texts = [
        leaf.path for leaf in leaves if f"{leaf.path}.".startswith(f"{column}.") and leaf.physical_type == "BYTE_ARRAY"
    ]
    return parquet.ParquetFile(path, metadata=metadata, read_dictionary=texts)


def _check_sizes(path: Path, metadata: Any) -> None:
    """Refuse a file whose labels, or one row group of it, would take far more memory than the file is large."""
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    largest = max((group.total_byte_size for group in groups), default=0)
    unpacked = max(ROW_BYTES * metadata.num_rows, largest)
    check_unpacked(str(path), path.stat().st_size, unpacked, ARRAY_GROWTH, InputError)


def open_parquet(files: list[Path], where: str) -> Pile:
    """Index parquet files: their labels are read, their images are not."""
    arrow = require("pyarrow", extra="parquet", purpose=_PURPOSE)
    parquet = require("pyarrow.parquet", extra="parquet", purpose=_PURPOSE)
    labels, groups, columns = Labels(where), [], []
    listed, lengths, total = None, [], 0
    for number, path in enumerate(files):
        try:
            check_regular(path)
            image, label = find_columns(parquet.read_schema(path), arrow, str(path))
            file = _opened(path, label, parquet)
            rows = file.metadata.num_rows
            _check_sizes(path, file.metadata)
            labels.add(None if label is None else file.read([label], use_threads=False).column(label), rows, arrow)
            listed = listed or listed_classes(file.schema_arrow.metadata, label)
            at = total
            for group in range(file.metadata.num_row_groups):
                groups.append((at, number, group))
                at += file.metadata.row_group(group).num_rows
            file.close()
        except (arrow.ArrowException, OSError) as error:
            raise in_file(error, path) from None
        if at - total != rows:
            raise InputError(f"{path} is damaged: its row groups have {at - total} rows, and it claims {rows}.")
        columns.append(image)
        lengths.append((split_in(path), rows))
        total += rows
    pictures = ParquetPictures(tuple(files), tuple(columns), np.array(groups, np.int64).reshape(-1, 3), total)
    return labels.pile(pictures, listed, lengths)
