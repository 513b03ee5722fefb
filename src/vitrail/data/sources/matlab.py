"""A reader of MATLAB's version 5 files, as far as published lists of labels need it: numbers, text, tables of both.

A file is a header of 128 bytes and then elements: a tag of 8 bytes (type and length; short ones hold their data in
the tag itself), data, padding to 8 bytes. Compressed elements hold one other element.
"""

import math
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from vitrail.base.errors import InputError
from vitrail.base.limits import ARRAY_GROWTH, ELEMENTS, most_unpacked
from vitrail.base.reading import read_bytes

_NUMBERS = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
_TEXTS = {16: "utf-8", 17: "utf-16", 18: "utf-32", 4: "utf-16", 2: "latin-1"}
_MATRIX, _COMPRESSED = 14, 15
_CELL, _STRUCT, _OBJECT, _CHAR, _SPARSE, _LAST_NUMERIC = 1, 2, 3, 4, 5, 15
_MOST_VALUES = 2**28
_MOST_DEPTH = 8


def read_matlab(path: Path) -> dict[str, Any]:
    """Return the variables of a file: arrays, text, and for a table (struct) a dict of lists."""
    data = read_bytes(path)
    if len(data) < 128 or data[126:128] not in (b"IM", b"MI"):
        raise InputError(f"{path} is not a MATLAB file of version 5; get the published one.")
    order = "<" if data[126:128] == b"IM" else ">"
    try:
        return dict(_Reader(str(path), order, most_unpacked(len(data), ARRAY_GROWTH)).variables(data[128:]))
    except (struct.error, zlib.error, ValueError, KeyError, IndexError, LookupError) as error:
        raise InputError(f"{path} is damaged, or contains more than numbers, text and tables ({error}).") from None


class _Reader:
    def __init__(self, subject: str, order: str, room: int) -> None:
        self.subject, self.order = subject, order
        self.tag = struct.Struct(order + "II")
        self.count = 0
        """How many elements there were so far."""
        self.most = ELEMENTS.value
        self.room = room
        """How many bytes may still be unpacked."""

    def variables(self, data: bytes) -> list[tuple[str, Any]]:
        """Read every variable of a file."""
        arrays = []
        for kind, content in self.elements(data):
            if kind == _COMPRESSED:
                unpacker = zlib.decompressobj()
                unpacked = unpacker.decompress(content, self.room)
                self.room -= len(unpacked)
                if not self.room:
                    raise ValueError("it unpacks to far more than its size")
                arrays += [
                    self.matrix(inner, 0) for inner_kind, inner in self.elements(unpacked) if inner_kind == _MATRIX
                ]
            elif kind == _MATRIX:
                arrays.append(self.matrix(content, 0))
        return arrays

    def elements(self, data: bytes) -> list[tuple[int, bytes]]:
        """Cut data into elements."""
        elements, at = [], 0
        while at + 8 <= len(data):
            kind, length = self.tag.unpack_from(data, at)
            if kind >> 16:  # a short element: length and type share a word, the data follow in the tag
                kind, length, start, step = kind & 0xFFFF, kind >> 16, at + 4, 8
                if length > 4:
                    raise ValueError("a short element of more than 4 bytes")
            else:
                start = at + 8
                step = 8 + length + (-length % 8 if kind != _COMPRESSED else 0)
            if start + length > len(data):
                raise ValueError("it is cut off")
            self.count += 1
            if self.count > self.most:
                ELEMENTS.check(self.count, self.subject)
            elements.append((kind, data[start : start + length]))
            at += step
        return elements

    def matrix(self, data: bytes, depth: int) -> tuple[str, Any]:
        """Read one array: its flags, shape and name, and then its contents by class."""
        if depth > _MOST_DEPTH:
            raise ValueError("tables in tables in tables")
        if not data:  # an empty cell of a table
            return "", None
        parts = self.elements(data)
        kind = struct.unpack_from(self.order + "I", parts[0][1])[0] & 0xFF
        shape = tuple(int(side) for side in self.numbers(*parts[1]))
        if min(shape, default=-1) < 0 or math.prod(shape) > _MOST_VALUES:
            raise ValueError(f"an array of the shape {shape}")
        name = parts[2][1].decode("latin-1")
        if kind == _STRUCT:
            return name, self.table(parts[3:], math.prod(shape), depth)
        if kind == _CHAR:
            return name, self.text(*parts[3])
        if kind in (_CELL, _OBJECT, _SPARSE) or kind > _LAST_NUMERIC:
            return name, None
        values = self.numbers(*parts[3])
        return name, values.reshape(shape, order="F")

    def table(self, parts: list[tuple[int, bytes]], rows: int, depth: int) -> dict[str, list[Any]]:
        """Read a struct array: the width of field names, the names, and for each row a matrix for each field."""
        width = int(self.numbers(*parts[0])[0])
        packed = parts[1][1]
        fields = [packed[at : at + width].split(b"\0")[0].decode("latin-1") for at in range(0, len(packed), width)]
        cells = [self.matrix(content, depth + 1)[1] for _, content in parts[2:]]
        if len(cells) != rows * len(fields):
            raise ValueError(f"{len(cells)} cells in a table of {rows} rows and {len(fields)} fields")
        return {field: cells[at :: len(fields)] for at, field in enumerate(fields)}

    def numbers(self, kind: int, content: bytes) -> np.ndarray:
        """Read plain numbers, whatever type they are stored in."""
        return np.frombuffer(content, np.dtype(self.order + _NUMBERS[kind]))

    def text(self, kind: int, content: bytes) -> str:
        """Read a line of text."""
        encoding = _TEXTS[kind]
        if encoding in ("utf-16", "utf-32"):
            encoding += "-le" if self.order == "<" else "-be"
        return content.decode(encoding)
