"""SHA-256 of a file that carries its own digest, and a head start for it.

Hashing lets go of Python's lock. So a command that knows which file it will need can begin to hash it in a thread, and
import torch meanwhile; who asks for the digest later finds it done, and the file in memory.
"""

import hashlib
import mmap
import os
import re
import stat
import threading
from dataclasses import dataclass
from pathlib import Path

LARGEST_HEADER = 16 * 2**20
"""Bytes; the header of a model with 21,843 class names takes one megabyte."""
NO_DIGEST = "0" * 64
DIGEST = re.compile(rb'"vitrail\.sha256":"([0-9a-f]{64})"')
"""Where in the header of a file its own digest stands."""

Identity = tuple[int, int, int, int]


def own_digest(header: bytes, file: memoryview) -> str:
    """Compute SHA-256 over a whole file with the digits of its own digest taken as zeros.

    The header begins behind the eight bytes that give its length.
    """
    found = DIGEST.search(header)
    if found is None:
        return hashlib.sha256(file).hexdigest()
    begin, end = 8 + found.start(1), 8 + found.end(1)
    digest = hashlib.sha256(file[:begin])
    digest.update(NO_DIGEST.encode())
    digest.update(file[end:])
    return digest.hexdigest()


@dataclass
class _Begun:
    """A digest that a thread is computing."""

    path: Path
    thread: threading.Thread | None = None
    result: tuple[Identity, str] | None = None


_all_begun: dict[str, _Begun] = {}


def begin(path: Path) -> None:
    """Start to compute the digest of a file in a thread, if the file is one that carries its own."""
    begun = _Begun(path)
    begun.thread = threading.Thread(target=_compute, args=(begun,), name="vitrail-digest", daemon=True)
    _all_begun[os.fspath(path)] = begun
    begun.thread.start()


def begun(path: Path) -> str | None:
    """Return the digest that was begun, when it is done; None if there is none, or the file has changed since."""
    found = _all_begun.pop(os.fspath(path), None)
    if found is None or found.thread is None:
        return None
    found.thread.join()
    if found.result is None or found.result[0] != _identity(path.stat()):
        return None
    return found.result[1]


def _compute(begun: _Begun) -> None:
    try:
        if not stat.S_ISREG(begun.path.stat().st_mode):  # a pipe would make us wait for its writer
            return
        with begun.path.open("rb") as file:
            identity = _identity(os.fstat(file.fileno()))
            length = int.from_bytes(file.read(8), "little")
            header = file.read(length) if length <= LARGEST_HEADER else b""
            if DIGEST.search(header) is not None:
                with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as memory, memoryview(memory) as view:
                    begun.result = identity, own_digest(header, view)
    except (OSError, ValueError):
        return  # whoever reads the file says what is wrong with it


def _identity(status: os.stat_result) -> Identity:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
