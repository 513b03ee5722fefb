"""Time several programs against each other on a noisy machine: rounds in random order, ratios of pairs, intervals.

In a round every contestant runs once, in an order of its own, so that a disturbance meets each of them as often. Times
of one round are compared with each other only: the ratio of two contestants is the median of the ratios of their
rounds, and its interval (95%) comes from drawing rounds again (bootstrap).
"""

import json
import platform
import random
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from vitrail.runtime.timing import gemm_peak as products_per_second

Contestant = Callable[[], object]
Clock = Callable[[], float]

DRAWS = 2000
"""Times that rounds are drawn again for an interval."""
COVERED = 0.95


@dataclass(frozen=True, kw_only=True)
class Ratio:
    """How many times as fast one contestant is as another."""

    median: float
    low: float
    high: float
    """Between `low` and `high` lie 95% of the medians of rounds that are drawn again."""

    def __str__(self) -> str:
        """Write it with its interval."""
        return f"{self.median:.3f}x ({self.low:.3f} to {self.high:.3f})"


@dataclass(frozen=True, kw_only=True)
class Timing:
    """What one contestant did."""

    name: str
    seconds: float
    """The median of its rounds."""
    images_per_second: float
    """By the median of its rounds."""
    ratio: float
    """How many times as fast as the fastest peer, the median over rounds; for a peer, beside the fastest too."""
    interval: tuple[float, float]
    """Of that ratio."""
    peak_share: float
    """Useful matrix-product FLOPs per second over the measured GEMM peak."""


def race(
    contestants: dict[str, Contestant], rounds: int, *, seed: int = 0, clock: Clock = time.perf_counter
) -> dict[str, list[float]]:
    """Run everyone once to warm up, then once in each round, in random order; return the seconds of each round."""
    for run in contestants.values():
        run()
    order, names = random.Random(seed), list(contestants)  # noqa: S311
    seconds: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(rounds):
        for name in order.sample(names, len(names)):
            start = clock()
            contestants[name]()
            seconds[name].append(clock() - start)
    return seconds


def paired(ours: Sequence[float], theirs: Sequence[float], *, seed: int = 0) -> Ratio:
    """Return how many times as fast we were, from the seconds of both in the same rounds."""
    ratios = [their / our for our, their in zip(ours, theirs, strict=True)]
    draw = random.Random(seed)  # noqa: S311
    medians = sorted(statistics.median(draw.choices(ratios, k=len(ratios))) for _ in range(DRAWS))
    edge = round(DRAWS * (1 - COVERED) / 2)
    return Ratio(median=statistics.median(ratios), low=medians[edge], high=medians[-1 - edge])


def fastest_peer(seconds: dict[str, list[float]], ours: str) -> str:
    """Name the contestant with the smallest median whose name does not begin with ours; ourselves if there is none."""
    peers = [name for name in seconds if not name.startswith(ours)] or list(seconds)
    return min(peers, key=lambda name: statistics.median(seconds[name]))


def contest(
    contestants: dict[str, Contestant],
    *,
    ours: str,
    images: int,
    flops: float,
    rounds: int = 8,
    peak: float,
) -> list[Timing]:
    """Run every contestant once a round, and compare all with the fastest peer."""
    return compare(race(contestants, rounds), ours=ours, images=images, flops=flops, peak=peak)


def compare(
    seconds: dict[str, list[float]], *, ours: str, images: int, flops: float = 0.0, peak: float = 1.0
) -> list[Timing]:
    """Compare the rounds of all with those of the fastest peer."""
    peer = fastest_peer(seconds, ours)
    timings = []
    for name, own in seconds.items():
        ratio, median = paired(own, seconds[peer]), statistics.median(own)
        timings.append(
            Timing(
                name=name,
                seconds=median,
                images_per_second=images / median,
                ratio=ratio.median,
                interval=(ratio.low, ratio.high),
                peak_share=flops / median / peak,
            )
        )
    return timings


def gemm_peak(dim: int = 768, mlp_dim: int = 3072, rows: int = 1576) -> float:
    """Measure FLOP/s of torch on the largest matrix products of the model, by the faster of its two libraries."""
    return 2 * products_per_second(rows=rows, inner=dim, columns=mlp_dim, seconds=0.5)


def show(title: str, timings: list[Timing]) -> None:
    """Print one table."""
    print(f"\n{title}\n{'':34}{'images/s':>10}{'to best peer':>14}{'interval':>16}{'of GEMM peak':>14}")
    for timing in sorted(timings, key=lambda timing: -timing.images_per_second):
        low, high = timing.interval
        interval = f"{low:.3f}-{high:.3f}"
        print(
            f"{timing.name:34}{timing.images_per_second:10.2f}{timing.ratio:13.3f}x{interval:>16}"
            f"{timing.peak_share:14.0%}"
        )


def machine() -> dict[str, object]:
    """Describe where and when this was measured."""
    return {
        "date": time.strftime("%Y-%m-%d"),
        "machine": {"threads": torch.get_num_threads(), "cpu": torch.backends.cpu.get_cpu_capability()},
        "torch": torch.__version__,
        "python": platform.python_version(),
    }


def save(name: str, tables: dict[str, list[Timing]], peak: float) -> None:
    """Write dated results beside this file; tables that this run did not measure stay, with their own date."""
    run = machine() | {"gemm_peak_gflops": peak / 1e9}
    store(name, {title: run | {"timings": [asdict(timing) for timing in timings]} for title, timings in tables.items()})


def store(name: str, results: dict[str, object]) -> None:
    """Write results beside this file; others of the same name stay."""
    path = Path(__file__).parent / "results" / f"{name}.json"
    path.parent.mkdir(exist_ok=True)
    stored = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps(stored | results, indent=1) + "\n")
