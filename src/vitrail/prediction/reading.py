"""Many images by several threads: batches that are read together, and results that come in order."""

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial

import torch

from vitrail.base.errors import ImageError
from vitrail.base.shapes import PixelBatch, Pixels
from vitrail.prediction.order import Job, Result, by_threads

Prepare = Callable[[int], Pixels]
"""Reads one image, by number, and brings it to the model's size."""


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
    """Yield the result of every job, in order, as `by_threads` does; in a worker torch computes with `cores`."""
    before = torch.get_num_threads()
    try:
        with closing(by_threads(work, jobs, workers=workers, start=partial(torch.set_num_threads, cores))) as results:
            yield from results
    finally:
        torch.set_num_threads(before)  # what a worker sets, later threads would start with
