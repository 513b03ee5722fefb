"""The graph of an ONNX file alone: its weights stay in the file, from where a runtime maps them into memory.

ONNX lets the numbers of a tensor lie in another file, at some place. Here that other file is the file itself. To read
the weights of B/16 into memory, as a runtime does otherwise, takes ten times as long as to map them.
"""

import mmap
from collections.abc import Iterator
from pathlib import Path

from vitrail.runtime.onnx_fields import bytes_field, fields, number_field

_GRAPH, _WEIGHTS = 7, 5
_NUMBERS, _ELSEWHERE, _WHERE = 9, 13, 14
"""Of a tensor: its numbers as bytes, where else they lie, and that they lie elsewhere."""
LEAST = 1024
"""Bytes of the smallest tensor that is mapped; smaller ones, such as shapes, stay in the graph."""


def without_weights(path: Path) -> bytes:
    """Return the content of an ONNX file with references to the file in place of its weights."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return b"".join(
            bytes_field(_GRAPH, b"".join(_graph(content, start, end, path.name)))
            if number == _GRAPH
            else content[place:end]
            for number, place, start, end in fields(content, 0, len(content))
        )


def _graph(content: mmap.mmap, start: int, end: int, name: str) -> Iterator[bytes]:
    """Yield the fields of a graph."""
    for number, place, begin, stop in fields(content, start, end):
        large = number == _WEIGHTS and stop - begin >= LEAST
        yield _tensor(content, begin, stop, name) if large else content[place:stop]


def _tensor(content: mmap.mmap, start: int, end: int, name: str) -> bytes:
    """Return a tensor whose numbers lie elsewhere."""
    parts, references = [], []
    for number, place, begin, stop in fields(content, start, end):
        if number != _NUMBERS:
            parts.append(content[place:stop])
            continue
        facts = {"location": name, "offset": begin, "length": stop - begin}
        for key, value in facts.items():
            entry = bytes_field(1, key.encode()) + bytes_field(2, str(value).encode())
            references.append(bytes_field(_ELSEWHERE, entry))
        references.append(number_field(_WHERE, 1))
    # At the end, where they win: a tensor of a quantised graph says itself that its numbers do not lie elsewhere.
    return bytes_field(_WEIGHTS, b"".join(parts + references))
