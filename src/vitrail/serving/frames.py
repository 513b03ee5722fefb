"""Messages between the server and its workers: a head in JSON, and plain bytes behind it; nothing is pickled."""

import asyncio
import json
import socket
import struct
from typing import Any

_LENGTHS = struct.Struct("<IQ")
MOST_HEAD = 64 * 2**20
MOST_BYTES = 2**32
"""More than any message has; a stream that claims more is not one of ours."""

Head = dict[str, Any]


def packed_head(head: Head, size: int) -> bytes:
    """Return what goes before the bytes of a message."""
    text = json.dumps(head, separators=(",", ":")).encode()
    return _LENGTHS.pack(len(text), size) + text


def send(stream: socket.socket, head: Head, payload: bytes | memoryview = b"") -> None:
    """Send a message, and wait until it is on its way."""
    stream.sendall(packed_head(head, len(payload)))
    if len(payload):
        stream.sendall(payload)


def receive(stream: socket.socket) -> tuple[Head, bytearray] | None:
    """Wait for the next message; None when the other side has closed the stream."""
    lengths = _exactly(stream, _LENGTHS.size)
    if lengths is None:
        return None
    text, size = _checked(bytes(lengths))
    head, payload = _exactly(stream, text), _exactly(stream, size)
    return None if head is None or payload is None else (json.loads(head), payload)


async def receive_async(reader: asyncio.StreamReader) -> tuple[Head, bytes]:
    """Wait for the next message; raises `asyncio.IncompleteReadError` when the other side has closed the stream."""
    text, size = _checked(await reader.readexactly(_LENGTHS.size))
    head = json.loads(await reader.readexactly(text))
    return head, await reader.readexactly(size)


def _checked(lengths: bytes) -> tuple[int, int]:
    text, size = _LENGTHS.unpack(lengths)
    if text > MOST_HEAD or size > MOST_BYTES:
        raise ValueError(f"a message claims {text} and {size} bytes.")
    return text, size


def _exactly(stream: socket.socket, size: int) -> bytearray | None:
    content = bytearray(size)
    view, at = memoryview(content), 0
    while at < size:
        count = stream.recv_into(view[at:])
        if not count:
            return None
        at += count
    return content
