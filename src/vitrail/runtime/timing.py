"""How fast an engine is: passes of one batch, timed one by one."""

import math
import statistics
import time
from dataclasses import dataclass

import torch

from vitrail.base.products import linear, onednn_is_faster
from vitrail.base.shapes import PixelBatch
from vitrail.runtime.engine import Engine

SECONDS = 2.0
"""How long passes are repeated, at least."""
FEWEST = 3
"""Passes that are timed at least."""


@dataclass(frozen=True, kw_only=True)
class Timing:
    """The passes of one batch."""

    batch: int
    """Images in each pass."""
    seconds: tuple[float, ...]
    """How long each pass took."""

    @property
    def median(self) -> float:
        """Half of the passes took at most as long, in seconds."""
        return statistics.median(self.seconds)

    @property
    def slow(self) -> float:
        """99% of the passes took at most as long, in seconds."""
        return sorted(self.seconds)[math.ceil(0.99 * len(self.seconds)) - 1]

    @property
    def images_per_second(self) -> float:
        """Images in a second, by the median pass."""
        return self.batch / self.median


def example_pixels(engine: Engine, batch: int) -> PixelBatch:
    """Return a batch of noise; how long a pass takes does not depend on what is in an image."""
    how = engine.preprocessing
    noise = torch.Generator().manual_seed(0)
    shape = (batch, *how.image_size, how.channels)
    return torch.randint(0, 256, shape, dtype=torch.uint8, generator=noise).permute(0, 3, 1, 2)


def time_engine(engine: Engine, batch: int, *, seconds: float = SECONDS) -> Timing:
    """Time passes of a batch, after two that are not counted: the first one compiles and finds memory."""
    pixels = example_pixels(engine, batch)
    answer = engine.logits if engine.num_outputs else engine.features
    for _ in range(2):
        answer(pixels).cpu()
    times: list[float] = []
    while len(times) < FEWEST or sum(times) < seconds:
        start = time.perf_counter()
        answer(pixels).cpu()
        times.append(time.perf_counter() - start)
    return Timing(batch=batch, seconds=tuple(times))


def gemm_peak(*, rows: int = 1576, inner: int = 768, columns: int = 3072, seconds: float = 1.0) -> float:
    """Return the most multiply-accumulates in a second that torch does in float32: the best of many products.

    The default is the first product of the MLP of B/16 for 8 images, by the library that is faster on this processor.
    """
    tokens, weight = torch.rand(rows, inner), torch.rand(columns, inner)
    out, times = linear(tokens, weight), [math.inf]
    start = time.perf_counter()
    while time.perf_counter() - start < seconds:
        begin = time.perf_counter()
        if onednn_is_faster():
            linear(tokens, weight)
        else:  # fresh memory costs more than a call
            torch.mm(tokens, weight.T, out=out)
        times.append(time.perf_counter() - begin)
    return rows * inner * columns / min(times)
