"""What the C library does with memory that a process frees."""

import ctypes
import sys

TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3  # the numbers of M_TRIM_THRESHOLD and M_MMAP_THRESHOLD in malloc.h
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
