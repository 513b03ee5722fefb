"""Parquet files with a column of images, read a row group at a time (extra `parquet`).

One file, or a folder of them (`data/` inside it too), with the split in the names: `train-00000-of-00002.parquet`.
Reading in random order reads a whole row group for one image; for training on large data, tar shards are the better
form.
"""

import os
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np

from vitrail.base.errors import ImageError, InputError
from vitrail.base.extras import require
from vitrail.data.sources.patterns import split_in
from vitrail.data.sources.pile import Pile
from vitrail.data.sources.tables import Labels, find_columns, image_bytes, in_file, listed_classes

_GROUPS_KEPT = 4
_PURPOSE = "reading parquet files"


def files_in(folder: Path) -> list[Path]:
    """Return the parquet files of a folder, or of its `data` folder."""
    root = folder.resolve()
    for place in (folder, folder / "data"):
        if place.is_dir() and place.resolve().is_relative_to(root):
            found = sorted(path for path in place.glob("*.parquet") if path.resolve().is_relative_to(root))
            if found:
                return found
    return []


class ParquetPictures:
    """Images in the rows of parquet files."""

    def __init__(self, files: tuple[Path, ...], columns: tuple[str, ...], groups: np.ndarray) -> None:
        self.files, self.columns = files, columns
        self.groups = groups
        """For each row group: its first row among all, its file, its number in it."""
        self.length = 0
        self._forget()

    def _forget(self) -> None:
        self._process = os.getpid()
        self._open: dict[int, Any] = {}
        self._read: OrderedDict[int, Any] = OrderedDict()

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

    def read(self, row: int) -> bytes:
        """Read one image, from a row group that is at hand or is read now."""
        if self._process != os.getpid():
            self._forget()
        group, at = self._place(row)
        if group not in self._read:
            while len(self._read) >= _GROUPS_KEPT:
                self._read.popitem(last=False)
            self._read[group] = self._column(*map(int, self.groups[group, 1:]))
        self._read.move_to_end(group)
        return image_bytes(self._read[group][at])

    def _column(self, file: int, group: int) -> Any:
        parquet = require("pyarrow.parquet", extra="parquet", purpose=_PURPOSE)
        try:
            if file not in self._open:
                self._open[file] = parquet.ParquetFile(self.files[file])
            table = self._open[file].read_row_group(group, columns=[self.columns[file]], use_threads=False)
        except Exception as error:  # arrow has many kinds, and a damaged file can raise any
            raise ImageError(f"its row group cannot be read ({error}).") from None
        return table.column(self.columns[file])

    def __getstate__(self) -> dict[str, object]:
        """Leave open files behind: another process opens its own."""
        return self.__dict__ | {"_process": -1, "_open": {}, "_read": OrderedDict()}


def open_parquet(files: list[Path], where: str) -> Pile:
    """Index parquet files: their labels are read, their images are not."""
    arrow = require("pyarrow", extra="parquet", purpose=_PURPOSE)
    parquet = require("pyarrow.parquet", extra="parquet", purpose=_PURPOSE)
    labels, groups, columns = Labels(where), [], []
    listed, lengths, total = None, [], 0
    for number, path in enumerate(files):
        try:
            file = parquet.ParquetFile(path)
            image, label = find_columns(file.schema_arrow, arrow, str(path))
            rows = file.metadata.num_rows
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
    pictures = ParquetPictures(tuple(files), tuple(columns), np.array(groups, np.int64).reshape(-1, 3))
    pictures.length = total
    return labels.pile(pictures, listed, lengths)
