"""Images on their way to the model: read and decoded by threads, in order, no more than a few batches ahead."""

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import torch

from vitrail.base.errors import ImageError
from vitrail.base.shapes import PixelBatch, Pixels

Prepare = Callable[[int], Pixels]
"""Reads one image, by number, and brings it to the model's size."""

MOST_WORKERS = 8
AHEAD = 2
"""Batches that are read while another is computed."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Prepared:
    """Some images in order: those that are ready for the model, and those that could not be read."""

    rows: Sequence[int]
    """Which images these are."""
    pixels: PixelBatch
    """Those that could be read, one after the other."""
    broken: dict[int, ImageError]
    """What is wrong with the others."""


def usual_workers() -> int:
    """Return how many threads read images unless told otherwise: one for each core, up to eight."""
    return min(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1, MOST_WORKERS)


def prepared_batches(
    prepare: Prepare, rows: Sequence[int], *, batch: int, workers: int, ahead: int = AHEAD
) -> Iterator[Prepared]:
    """Yield images in batches; while one is computed, the next `ahead` of them are being read.

    Decoders and resizing let go of Python's lock, so that threads share the work, and nothing is copied between
    processes. On a CPU that computes with all of its cores this still gains a little (docs/log.md).
    """
    chunks = (rows[start : start + batch] for start in range(0, len(rows), batch))
    if len(rows) == 1 or not workers:
        for chunk in chunks:
            yield _gathered(chunk, [_read(prepare, row) for row in chunk])
        return
    pool = ThreadPoolExecutor(workers, thread_name_prefix="vitrail-read")
    try:
        waiting: deque[tuple[Sequence[int], list[Future[Pixels | ImageError]]]] = deque()
        for chunk in chunks:
            waiting.append((chunk, [pool.submit(_read, prepare, row) for row in chunk]))
            if len(waiting) > ahead:
                yield _collected(*waiting.popleft())
        while waiting:
            yield _collected(*waiting.popleft())
    finally:
        pool.shutdown(cancel_futures=True)


def _read(prepare: Prepare, row: int) -> Pixels | ImageError:
    try:
        return prepare(row)
    except ImageError as error:
        return error


def _collected(rows: Sequence[int], futures: Sequence[Future[Pixels | ImageError]]) -> Prepared:
    return _gathered(rows, [future.result() for future in futures])


def _gathered(rows: Sequence[int], found: Sequence[Pixels | ImageError]) -> Prepared:
    """Put images beside each other, with the channels of a pixel side by side as decoders leave them."""
    good = [pixels for pixels in found if not isinstance(pixels, ImageError)]
    channels, height, width = good[0].shape if good else (0, 0, 0)
    together = torch.empty((len(good), height, width, channels), dtype=torch.uint8).permute(0, 3, 1, 2)
    for place, pixels in enumerate(good):
        together[place] = pixels
    broken = {row: error for row, error in zip(rows, found, strict=True) if isinstance(error, ImageError)}
    return Prepared(rows=rows, pixels=together, broken=broken)
