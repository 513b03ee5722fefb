"""The properties of an ONNX file, read without a runtime: the texts that its author stored beside the graph.

The graph is one field of the file, and is skipped.
"""

import mmap
from pathlib import Path

from vitrail.base.errors import CheckpointError
from vitrail.base.limits import HEADER_BYTES
from vitrail.base.reading import open_regular
from vitrail.runtime.onnx_fields import fields

_PROPERTIES, _KEY, _VALUE = 14, 1, 2
"""The numbers of the fields in onnx.proto."""


def read_properties(path: Path) -> dict[str, str]:
    """Return the properties of an ONNX file; a file of another kind is refused."""
    properties: dict[str, str] = {}
    try:
        with open_regular(path) as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            for number, _, start, end in fields(content, 0, len(content)):
                if number == _PROPERTIES:
                    HEADER_BYTES.check(end - start, f"a property of {path}", CheckpointError)
                    entry = content[start:end]
                    parts = {part: entry[begin:stop] for part, _, begin, stop in fields(entry, 0, len(entry))}
                    properties[parts.get(_KEY, b"").decode()] = parts.get(_VALUE, b"").decode()
    except (IndexError, ValueError):  # an empty file cannot be mapped
        raise CheckpointError(f"{path} is not an ONNX file, or is cut short; export the model again.") from None
    return properties
