"""What the C library does with memory that a process frees."""

import ctypes
import sys

TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3  # the numbers of M_TRIM_THRESHOLD and M_MMAP_THRESHOLD in malloc.h
KEPT = 2**30


def keep_freed_memory() -> None:
    """Keep what is freed instead of giving it back to the system, for processes that need the same again and again.

    A batch of photos is tens of megabytes of new pages, each of which the system clears first; that can take as long
    as turning them into floats. With a C library other than glibc nothing happens.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:
        mallopt(TRIM_THRESHOLD, KEPT)
        mallopt(MMAP_THRESHOLD, KEPT)
