"""The memory of the machine, and what the C library does with freed memory."""

import ctypes
import os
import sys
from pathlib import Path

from vitrail.base.errors import InputError
from vitrail.base.readable import in_bytes

DONT_NEED = 4  # the number of MADV_DONTNEED in mman.h
TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3  # the numbers of M_TRIM_THRESHOLD and M_MMAP_THRESHOLD in malloc.h
_CONTAINER = Path("/sys/fs/cgroup/memory.max")
LARGEST = 2**30
"""Bytes up to which freed memory is kept."""


def keep_freed_memory() -> None:
    """Keep freed memory in the process instead of returning it to the system, for loops that need the same again.

    A batch of photos is tens of megabytes of new pages, each of which the system clears first; that can take as long
    as turning them into floats. With a C library other than glibc nothing happens.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:
        mallopt(TRIM_THRESHOLD, LARGEST)
        mallopt(MMAP_THRESHOLD, LARGEST)


def give_back(address: int, size: int) -> None:
    """Return the whole pages between two places of memory to the system: what they hold is gone, and reads as zeros.

    What lies there must not be used again. Only Linux has this.
    """
    madvise = getattr(ctypes.CDLL(None), "madvise", None) if sys.platform == "linux" else None
    page = os.sysconf("SC_PAGE_SIZE")
    first, end = -(-address // page) * page, (address + size) // page * page
    if madvise is not None and end > first:
        madvise(ctypes.c_void_p(first), ctypes.c_size_t(end - first), DONT_NEED)


def machine_memory() -> int:
    """Return the bytes of memory that this process may use: those of the machine, or fewer in a container."""
    pages = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        return min(pages, int(_CONTAINER.read_text()))
    except (OSError, ValueError):  # not in a container, or one without a limit: "max"
        return pages


def check_memory(needed: int, subject: str) -> None:
    """Refuse work that needs more memory than the machine has; `subject` begins the sentence."""
    if needed > (most := machine_memory()):
        raise InputError(f"{subject} needs {in_bytes(needed)} of memory, but this machine has {in_bytes(most)}.")
