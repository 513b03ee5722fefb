"""Many images by several threads: batches that are read together, and results that come in order."""

from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import torch

from vitrail.base.errors import ImageError
from vitrail.base.shapes import PixelBatch, Pixels

Prepare = Callable[[int], Pixels]
"""Reads one image, by number, and brings it to the model's size."""
Job = TypeVar("Job")
Result = TypeVar("Result")


@dataclass(frozen=True, kw_only=True, eq=False)
class Prepared:
    """Some images in order: those that are ready for the model, and those that could not be read."""

    rows: Sequence[int]
    """Which images these are."""
    pixels: PixelBatch
    """Those that could be read, one after the other."""
    broken: dict[int, ImageError]
    """What is wrong with the others."""


def read_batch(prepare: Prepare, rows: Sequence[int]) -> Prepared:
    """Read some images, and put them beside each other with the channels of a pixel side by side, as decoders do."""
    good: list[Pixels] = []
    broken: dict[int, ImageError] = {}
    for row in rows:
        try:
            good.append(prepare(row))
        except ImageError as error:
            broken[row] = error
    channels, height, width = good[0].shape if good else (0, 0, 0)
    together = torch.empty((len(good), height, width, channels), dtype=torch.uint8).permute(0, 3, 1, 2)
    for place, pixels in enumerate(good):
        together[place] = pixels
    return Prepared(rows=rows, pixels=together, broken=broken)


def in_order(
    work: Callable[[Job], Result], jobs: Iterable[Job], *, workers: int, cores: int = 1
) -> Generator[Result, None, None]:
    """Yield the result of every job, in order, while threads work on the next ones: one job waits for each of them.

    In a worker torch computes with `cores` threads. Decoders, resizing and products of matrices let go of Python's
    lock, so that threads share the work, and nothing is copied between processes.
    """
    before = torch.get_num_threads()
    pool = ThreadPoolExecutor(workers, "vitrail-predict", initializer=torch.set_num_threads, initargs=(cores,))
    waiting: deque[Future[Result]] = deque()
    try:
        for job in jobs:
            waiting.append(pool.submit(work, job))
            if len(waiting) > 2 * workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)
        torch.set_num_threads(before)  # what a worker sets, later threads would start with
