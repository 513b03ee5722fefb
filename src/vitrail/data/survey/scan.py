"""Read every image of a data set once, and keep the facts about it.

Only decoding a file to its end shows that it is truncated, so every image is decoded, on all cores. Of the pixels only
a print is kept (`duplicates.py`); memory is some 300 bytes for each image.
"""

import os
import threading
from collections import deque
from collections.abc import Generator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Int

from vitrail.base.errors import VitrailError
from vitrail.base.progress import Progress, silent
from vitrail.base.shapes import Pixels
from vitrail.data.dataset import UNLABELLED, Dataset
from vitrail.data.pixels.decode import decode, from_array, probe
from vitrail.data.survey.duplicates import DETAIL, Print, Prints, fingerprint

Numbers = Int[np.ndarray, "image"]
Starts = Int[np.ndarray, "split"]
Mask = Bool[np.ndarray, "image"]

BLOCK = 32  # images that a thread reads at a time


class ImageFacts(NamedTuple):
    """The facts about one image."""

    format: str
    mode: str
    height: int
    width: int
    bytes: int
    print: Print | None
    error: str | None


@dataclass(frozen=True, kw_only=True, eq=False)
class Scan:
    """All images of all splits, one after the other, as arrays."""

    splits: Mapping[str, Dataset]
    """The data sets, by the names of their splits."""
    heights: Numbers
    """Pixels from top to bottom, upright; 0 for what could not be read."""
    widths: Numbers
    """Pixels from left to right, upright."""
    bytes: Numbers
    """Bytes of the file, or of the array."""
    kinds: tuple[tuple[str, str], ...]
    """The formats and modes (Pillow's words) that occur."""
    kind: Numbers
    """Which of them an image has, or -1 for what could not be read."""
    errors: Mapping[int, str]
    """The errors of the images that could not be read."""
    prints: Prints
    """The prints that identify images."""

    @cached_property
    def part(self) -> Numbers:
        """The number of the split that each image is in."""
        return np.repeat(np.arange(len(self.splits)), [len(dataset) for dataset in self.splits.values()])

    @cached_property
    def starts(self) -> Starts:
        """The number of the first image of each split."""
        return np.concatenate([[0], np.cumsum([len(dataset) for dataset in self.splits.values()])])

    @cached_property
    def targets(self) -> Numbers:
        """The class of each image, or -1."""
        return np.concatenate([dataset.targets for dataset in self.splits.values()]).astype(np.int64)

    @cached_property
    def readable(self) -> Mask:
        """Whether an image could be read."""
        return self.kind >= 0

    @property
    def labels(self) -> tuple[str, ...]:
        """The class names."""
        return next(iter(self.splits.values())).labels

    @property
    def where(self) -> str:
        """The path or name of the data."""
        return next(iter(self.splits.values())).where

    def split(self, row: int) -> str:
        """Return the name of the split of an image."""
        return list(self.splits)[self.part[row]]

    def name(self, row: int) -> str:
        """Return the name of an image."""
        return self.splits[self.split(row)].name(int(row - self.starts[self.part[row]]))

    def label(self, row: int) -> str | None:
        """Return the class name of an image, or None without one."""
        target = int(self.targets[row])
        return None if target == UNLABELLED else self.labels[target]

    def image(self, row: int) -> Pixels:
        """Read an image again."""
        return self.splits[self.split(row)].image(int(row - self.starts[self.part[row]]))


def scan(
    splits: Mapping[str, Dataset], *, near: bool = True, workers: int | None = None, progress: Progress = silent
) -> Scan:
    """Read every image of every split; without `near`, nothing is computed for near duplicates.

    `workers` threads read at the same time, by default one for each core.
    """
    total = sum(len(dataset) for dataset in splits.values())
    heights, widths = np.zeros(total, dtype=np.int32), np.zeros(total, dtype=np.int32)
    sizes, kind = np.zeros(total, dtype=np.int64), np.full(total, -1, dtype=np.int16)
    kinds: dict[tuple[str, str], int] = {}
    errors: dict[int, str] = {}
    prints = Prints(
        digests=np.zeros(total, dtype=np.uint64),
        hashes=np.zeros(total, dtype=np.uint64),
        details=np.zeros((total if near else 0, DETAIL, DETAIL), dtype=np.int8),
        comparable=np.zeros(total, dtype=bool),
    )
    with closing(_read_all(splits, near, workers or _cores())) as images:
        for row, facts in enumerate(progress(images, total=total, title="reading images")):
            sizes[row] = facts.bytes
            if facts.print is None:
                errors[row] = facts.error or ""
                continue
            heights[row], widths[row] = facts.height, facts.width
            kind[row] = kinds.setdefault((facts.format, facts.mode), len(kinds))
            prints.digests[row], prints.hashes[row] = facts.print.digest, facts.print.hash
            if facts.print.detail is not None:
                prints.details[row], prints.comparable[row] = facts.print.detail, True
    return Scan(
        splits=splits,
        heights=heights,
        widths=widths,
        bytes=sizes,
        kinds=tuple(kinds),
        kind=kind,
        errors=errors,
        prints=prints,
    )


def short_name(name: str, where: str) -> str:
    """Return the name of an image without the folder or file that all of them are in."""
    inside = name.removeprefix(where.rstrip("/"))
    return inside[1:] if inside != name and inside[:1] in ("/", ":") else name


def read_facts(dataset: Dataset, index: int, *, near: bool = True) -> ImageFacts:
    """Read one image to its end; an error becomes a sentence."""
    size = 0
    try:
        content = dataset.read(index)
        if isinstance(content, np.ndarray):
            size, pixels = content.nbytes, from_array(content)
            modes = {1: "L", 3: "RGB"}
            form, mode = "array", modes.get(pixels.shape[0], f"{pixels.shape[0]} channels")
        else:
            size = len(content)
            header, pixels = probe(content), decode(content)
            form, mode = header.format, header.mode
    except VitrailError as error:
        return ImageFacts("", "", 0, 0, size, None, str(error))
    except OSError as error:
        return ImageFacts("", "", 0, 0, size, None, f"it could not be read: {error.strerror or error}.")
    height, width = pixels.shape[1:]
    return ImageFacts(form, mode, height, width, size, fingerprint(pixels, near=near), None)


def _read_all(splits: Mapping[str, Dataset], near: bool, workers: int) -> Generator[ImageFacts]:
    """Read every image on several threads, and yield in order; few blocks are read ahead."""
    stopped = threading.Event()

    def block(dataset: Dataset, start: int) -> list[ImageFacts]:
        ends = min(start + BLOCK, len(dataset))
        return [read_facts(dataset, index, near=near) for index in range(start, ends) if not stopped.is_set()]

    pool = ThreadPoolExecutor(workers, thread_name_prefix="survey")
    ahead: deque[Future[list[ImageFacts]]] = deque()
    try:
        for dataset in splits.values():
            for start in range(0, len(dataset), BLOCK):
                ahead.append(pool.submit(block, dataset, start))
                if len(ahead) > 2 * workers:
                    yield from ahead.popleft().result()
        while ahead:
            yield from ahead.popleft().result()
    finally:  # also after Ctrl-C: no thread continues
        stopped.set()
        pool.shutdown(cancel_futures=True)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
