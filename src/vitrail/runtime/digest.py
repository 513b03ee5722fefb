"""The digest of an exported file, by which a damaged one is refused."""

import hashlib
import mmap
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from vitrail.base.errors import CheckpointError
from vitrail.base.reading import open_regular

MARK = b"vitrail-sha256-"
"""What stands before the digest, somewhere in the file."""
_DIGEST = re.compile(MARK + rb"([0-9a-f]{64})")
NO_DIGEST = MARK.decode() + "0" * 64
CHUNK = 2**30
"""Bytes that are digested at once."""


def signed(contents: Sequence[bytes]) -> list[bytes]:
    """Put the digest of some files into the one of them that has room for it."""
    digest = hashlib.sha256()
    for content in contents:
        digest.update(content)
    mark = MARK + digest.hexdigest().encode()
    return [content.replace(NO_DIGEST.encode(), mark, 1) for content in contents]


def check_digest(paths: Sequence[Path]) -> str | None:
    """Return the digest that files carry, or None if they carry none; refuse files of which a bit has changed."""
    computed, recorded = hashlib.sha256(), None
    for path in paths:
        if path.is_file() and not path.stat().st_size:  # which cannot be mapped
            raise CheckpointError(f"{path} is empty; export the model again, or get the file again.")
        with (
            open_regular(path, CheckpointError) as file,
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content,
        ):
            place = None if recorded is not None else _place(content)
            start = 0
            with memoryview(content) as view:
                if place is not None:
                    recorded = content[place - 64 : place].decode()
                    _update(computed, view, 0, place - 64)
                    computed.update(b"0" * 64)
                    start = place
                _update(computed, view, start, len(content))
    if recorded is not None and recorded != computed.hexdigest():
        raise CheckpointError(
            f"{paths[0]} is damaged: its SHA-256 does not match the one that it carries; export the model again, or "
            "get the file again."
        )
    return recorded


def _place(content: mmap.mmap) -> int | None:
    """Return where the digits of the digest end; facts are at the end of a file, so it is searched from there."""
    start = content.rfind(MARK)
    match = None if start < 0 else _DIGEST.match(content[start : start + len(MARK) + 64])
    return None if match is None else start + match.end()


def _update(digest: Any, view: memoryview, start: int, end: int) -> None:
    for begin in range(start, end, CHUNK):
        with view[begin : min(begin + CHUNK, end)] as part:
            digest.update(part)
