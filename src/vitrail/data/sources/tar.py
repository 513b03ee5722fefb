"""The headers of a tar file: names and places of its members, without unpacking anything.

A member is a header of 512 bytes and its data, padded to 512. Long names come before it as a member of their own:
GNU's type `L`, or POSIX's `x` with `length key=value` records. Everything that is not a plain file is named and passed
over; nothing is ever written, and no path of a member is ever opened.
"""

import os
from collections.abc import Iterator
from typing import NamedTuple

BLOCK = 512
_MOST_LONG_NAME = 1 << 16
_PACKED = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd")  # gzip, bzip2, xz, zstd
_PLAIN = (b"0", b"\0", b"7")
_KINDS = {
    b"1": "a hard link",
    b"2": "a symbolic link",
    b"3": "a device",
    b"4": "a device",
    b"5": "a folder",
    b"6": "a pipe",
    b"S": "a sparse file",
}


class Member(NamedTuple):
    """One entry of a tar file."""

    name: str
    offset: int
    """Where its data begin."""
    size: int
    kind: str | None
    """Its kind when it is not a plain file."""


class DamagedError(Exception):
    """A tar file that cannot be read on from some place."""


def members(handle: int) -> Iterator[Member]:
    """Walk over the members of an open tar file; raise `DamagedError` where it cannot be read on."""
    total = os.fstat(handle).st_size
    if os.pread(handle, 6, 0).startswith(_PACKED):
        raise DamagedError("it is compressed, and cannot be read in place; unpack it to a plain .tar")
    at = 0
    long_name: bytes | None = None
    long_size: int | None = None
    sparse = False
    while at < total:
        header = os.pread(handle, BLOCK, at)
        if len(header) < BLOCK:
            raise DamagedError(f"it is cut off inside a header at byte {at}")
        if not header.strip(b"\0"):
            return
        size = _checked_size(header, at)
        kind = header[156:157]
        start = at + BLOCK
        if kind in (b"L", b"x"):
            if size > _MOST_LONG_NAME:
                raise DamagedError(f"a name of {size} bytes at byte {at}")
            extra = os.pread(handle, size, start)
            if len(extra) < size:
                raise DamagedError(f"it is cut off inside a name at byte {start}")
            if kind == b"L":
                long_name = extra.rstrip(b"\0")
            else:
                long_name, long_size, sparse = _pax(extra, long_name)
            at = start + size + -size % BLOCK
            continue
        name = _name(header) if long_name is None else long_name
        size = size if long_size is None else long_size
        kind = b"S" if sparse else kind
        if kind not in (b"g", b"K"):
            long_name, long_size, sparse = None, None, False
            if kind == b"S" and header[482]:
                start = _after_map(handle, start)
            if start + size > total and kind in _PLAIN:
                raise DamagedError(f"it is cut off inside {_text(name)}: {total - start} of {size} bytes are there")
            yield Member(_text(name), start, size, None if kind in _PLAIN else _KINDS.get(kind, "of an unknown kind"))
        at = start + (0 if kind in (b"1", b"2", b"3", b"4", b"5", b"6") else size + -size % BLOCK)
    raise DamagedError(f"it is cut off after {total} bytes: the zeros that end a tar file are missing")


def _after_map(handle: int, at: int) -> int:
    """Pass over the blocks in which GNU tar lists the pieces of a sparse file."""
    while (block := os.pread(handle, BLOCK, at))[504:505] not in (b"", b"\0"):
        at += BLOCK
    return at + BLOCK if block else at


def _checked_size(header: bytes, at: int) -> int:
    """Return the size in a header whose checksum is right."""
    try:
        size, checksum = _octal(header[124:136]), _octal(header[148:156])
    except ValueError:
        size, checksum = 0, -1
    if sum(header) - sum(header[148:156]) + 8 * 32 != checksum:
        raise DamagedError(f"there is no header of a member at byte {at}")
    if not 0 <= size < 1 << 50:
        raise DamagedError(f"a member of {size} bytes at byte {at}")
    return size


def _octal(field: bytes) -> int:
    """Read a number: octal digits, or GNU's base 256 for large ones."""
    if field[0] & 0x80:
        return int.from_bytes(bytes([field[0] & 0x7F]) + field[1:], "big")
    return int(field.strip(b" \0") or b"0", 8)


def _name(header: bytes) -> bytes:
    name = header[:100].split(b"\0")[0]
    prefix = header[345:500].split(b"\0")[0] if header[257:263] == b"ustar\0" else b""
    return prefix + b"/" + name if prefix else name


def _pax(records: bytes, name: bytes | None) -> tuple[bytes | None, int | None, bool]:
    """Read the path and size of an extended header, and whether the file is sparse."""
    size, sparse = None, False
    while records:
        length, _, rest = records.partition(b" ")
        if not length.isdigit() or len(length) > 6 or not len(length) + 1 < int(length) <= len(records):
            raise DamagedError("an extended header that is not a list of records")
        key, _, value = rest[: int(length) - len(length) - 2].partition(b"=")
        if key == b"path":
            name = value
        elif key == b"size":
            if not value.isdigit() or len(value) > 15:
                raise DamagedError("an extended header with a size that is not a number")
            size = int(value)
        sparse |= key.startswith(b"GNU.sparse")
        records = records[int(length) :]
    return name, size, sparse


def _text(name: bytes) -> str:
    return name.decode(errors="backslashreplace")
