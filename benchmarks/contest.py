"""Time several programs against each other on a noisy machine: interleaved rounds, the best of each, ratios."""

import json
import platform
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

Contestant = Callable[[], object]


@dataclass(frozen=True, kw_only=True)
class Timing:
    """What one contestant did."""

    name: str
    seconds: float
    images_per_second: float
    ratio: float
    """To the fastest peer; for a peer, to the fastest too."""
    peak_share: float
    """Useful matrix-product FLOPs per second over the measured GEMM peak."""


def contest(
    contestants: dict[str, Contestant],
    *,
    ours: str,
    images: int,
    flops: float,
    rounds: int = 8,
    peak: float,
) -> list[Timing]:
    """Run every contestant once a round, in turn, and keep the best time of each."""
    for run in contestants.values():
        run()
    best = dict.fromkeys(contestants, float("inf"))
    for _ in range(rounds):
        for name, run in contestants.items():
            start = time.perf_counter()
            run()
            best[name] = min(best[name], time.perf_counter() - start)
    fastest_peer = min((seconds for name, seconds in best.items() if not name.startswith(ours)), default=float("nan"))
    return [
        Timing(
            name=name,
            seconds=seconds,
            images_per_second=images / seconds,
            ratio=fastest_peer / seconds,
            peak_share=flops / seconds / peak,
        )
        for name, seconds in best.items()
    ]


def gemm_peak(dim: int = 768, mlp_dim: int = 3072, rows: int = 1576, rounds: int = 20) -> float:
    """Measure FLOP/s of torch on the largest matrix products of the model."""
    tokens, kernel = torch.randn(rows, dim), torch.randn(mlp_dim, dim)
    product = torch.empty(rows, mlp_dim)
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        torch.mm(tokens, kernel.T, out=product)
        best = min(best, time.perf_counter() - start)
    return 2 * rows * dim * mlp_dim / best


def show(title: str, timings: list[Timing]) -> None:
    """Print one table."""
    print(f"\n{title}\n{'':34}{'images/s':>10}{'to best peer':>14}{'of GEMM peak':>14}")
    for timing in sorted(timings, key=lambda timing: -timing.images_per_second):
        print(f"{timing.name:34}{timing.images_per_second:10.2f}{timing.ratio:13.3f}x{timing.peak_share:14.0%}")


def save(name: str, tables: dict[str, list[Timing]], peak: float) -> None:
    """Write dated results beside this file; tables that this run did not measure stay, with their own date."""
    path = Path(__file__).parent / "results" / f"{name}.json"
    path.parent.mkdir(exist_ok=True)
    stored = json.loads(path.read_text()) if path.exists() else {}
    run = {
        "date": time.strftime("%Y-%m-%d"),
        "machine": {"threads": torch.get_num_threads(), "cpu": torch.backends.cpu.get_cpu_capability()},
        "torch": torch.__version__,
        "python": platform.python_version(),
        "gemm_peak_gflops": peak / 1e9,
    }
    stored |= {title: run | {"timings": [asdict(timing) for timing in timings]} for title, timings in tables.items()}
    path.write_text(json.dumps(stored, indent=1) + "\n")
