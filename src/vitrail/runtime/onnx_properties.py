"""The properties of an ONNX file, read without a runtime: the texts that its author stored beside the graph.

A file is a sequence of fields, each with its number and its length. The graph is one of them, and is skipped.
"""

import mmap
from pathlib import Path

from vitrail.base.errors import CheckpointError
from vitrail.base.limits import HEADER_BYTES
from vitrail.base.reading import open_regular

_PROPERTIES, _KEY, _VALUE = 14, 1, 2
"""The numbers of the fields in onnx.proto."""
_BYTES, _WIDTHS = 2, {1: 8, 5: 4}


def read_properties(path: Path) -> dict[str, str]:
    """Return the properties of an ONNX file; a file of another kind is refused."""
    properties: dict[str, str] = {}
    try:
        with open_regular(path) as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            for number, start, end in _fields(content, 0, len(content)):
                if number == _PROPERTIES:
                    HEADER_BYTES.check(end - start, f"a property of {path}", CheckpointError)
                    entry = content[start:end]
                    parts = {part: entry[begin:stop] for part, begin, stop in _fields(entry, 0, len(entry))}
                    properties[parts.get(_KEY, b"").decode()] = parts.get(_VALUE, b"").decode()
    except (IndexError, ValueError):  # an empty file cannot be mapped
        raise CheckpointError(f"{path} is not an ONNX file, or is cut short; export the model again.") from None
    return properties


def _fields(content: bytes | mmap.mmap, place: int, end: int) -> list[tuple[int, int, int]]:
    """List the fields of a message: number, where the value starts, and where it ends."""
    fields: list[tuple[int, int, int]] = []
    while place < end:
        tag, place = _number(content, place)
        kind = tag & 7
        if kind == 0:
            start = place
            _, place = _number(content, place)
        elif kind == _BYTES:
            length, start = _number(content, place)
            place = start + length
        elif kind in _WIDTHS:
            start, place = place, place + _WIDTHS[kind]
        else:
            raise ValueError(f"kind {kind} of a field")
        if place > end or not tag >> 3:
            raise ValueError("a field that ends behind the file")
        fields.append((tag >> 3, start, place))
    return fields


def _number(content: bytes | mmap.mmap, place: int) -> tuple[int, int]:
    """Read a whole number of seven bits in each byte, the lowest first, and return it and the place behind it."""
    value = shift = 0
    while True:
        byte = content[place]
        value |= (byte & 127) << shift
        place, shift = place + 1, shift + 7
        if byte < 128:
            return value, place
        if shift > 63:
            raise ValueError("a number without an end")
