"""The fields of which an ONNX file consists, each with its number and its length, read and written without a runtime.

A field is a whole number, or bytes, which may be fields again: the protocol buffers of onnx.proto.
"""

import mmap

_BYTES, _WIDTHS = 2, {1: 8, 5: 4}


def fields(content: bytes | mmap.mmap, place: int, end: int) -> list[tuple[int, int, int, int]]:
    """List the fields of a message: number, where the field starts, where its value starts, and where both end."""
    listed: list[tuple[int, int, int, int]] = []
    while place < end:
        begin = place
        tag, place = _read(content, place)
        kind = tag & 7
        if kind == 0:
            start = place
            _, place = _read(content, place)
        elif kind == _BYTES:
            length, start = _read(content, place)
            place = start + length
        elif kind in _WIDTHS:
            start, place = place, place + _WIDTHS[kind]
        else:
            raise ValueError(f"kind {kind} of a field")
        if place > end or not tag >> 3:
            raise ValueError("a field that ends behind the file")
        listed.append((tag >> 3, begin, start, place))
    return listed


def _read(content: bytes | mmap.mmap, place: int) -> tuple[int, int]:
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


def bytes_field(number: int, content: bytes) -> bytes:
    """Write a field of bytes."""
    return number_field(number, len(content), kind=_BYTES) + content


def number_field(number: int, value: int, *, kind: int = 0) -> bytes:
    """Write a field of a whole number, or what stands before bytes: their length."""
    return _number(number << 3 | kind) + _number(value)


def _number(value: int) -> bytes:
    parts = bytearray()
    while value > 127:
        parts.append(value & 127 | 128)
        value >>= 7
    parts.append(value)
    return bytes(parts)
