"""Train, evaluate and predict in turns for an hour in one process, and see whether memory and open files stay flat.

    python benchmarks/campaigns/soak.py [--minutes 60] [--seed 0] [--out benchmarks/results/soak.json]

A turn trains a small model on part of the sample and resumes it once, evaluates it, and predicts a folder of images,
one of them broken; everything goes through the public functions. After a turn, garbage is collected, and the memory of
the process (resident, and proportional with its workers), its open files, its threads and its children are counted.
The first fifth of the turns warms caches up; the slope of the rest comes with the 95% interval of a least-squares fit.
"""

import argparse
import ctypes
import gc
import json
import os
import tempfile
import time
from pathlib import Path

import numpy as np
from PIL import Image
from scipy import stats

import vitrail

WARM = 0.2
FLAT = {"rss_mb": 0.5, "pss_mb": 0.5, "files": 0.05, "threads": 0.05}
"""The steepest slope per minute that counts as flat, for the upper end of its interval."""


def usage() -> dict[str, float]:
    """Count what this process has; memory that the allocator keeps for later is returned to the system first."""
    gc.collect()
    ctypes.CDLL("libc.so.6").malloc_trim(0)
    rollup = Path("/proc/self/smaps_rollup").read_text().splitlines()
    kib = {line.split(":")[0]: int(line.split()[1]) for line in rollup[1:] if line.split()[-1] == "kB"}
    tasks = Path("/proc/self/task")
    children = sum(len((task / "children").read_text().split()) for task in tasks.iterdir())
    return {
        "rss_mb": kib["Rss"] / 1024,
        "pss_mb": kib["Pss"] / 1024,
        "files": len(os.listdir("/proc/self/fd")),  # noqa: PTH208 - one of them is the listing itself
        "threads": len(list(tasks.iterdir())),
        "children": children,
    }


def write_photos(folder: Path, chance: np.random.Generator) -> None:
    """Write 64 images of noise, and one that is cut off."""
    folder.mkdir()
    for number in range(64):
        pixels = chance.integers(0, 256, (40, 48, 3), np.uint8)
        Image.fromarray(pixels).save(folder / f"{number:02}.{('png', 'jpg')[number % 2]}")
    (folder / "broken.jpg").write_bytes((folder / "01.jpg").read_bytes()[:300])


def turn(photos: Path, number: int) -> None:
    """Train, resume, evaluate, predict."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        settings = {"steps": 30, "batch": 32, "fraction": 0.1, "seed": number, "workers": number % 3, "threads": 1}
        run = vitrail.train("sample", out=out, **settings)
        vitrail.train("sample", out=out, **settings)  # finished: only looked at
        score = vitrail.evaluate(run.model, "sample")
        assert 0 <= score.accuracy <= 1
        outcome = vitrail.predict(run.model, str(photos), out=Path(folder) / "predictions.csv", workers=1 + number % 2)
        assert outcome is not None
        assert len((Path(folder) / "predictions.csv").read_text().splitlines()) >= 65


def slopes(rows: list[dict[str, float]]) -> dict[str, dict[str, float | bool]]:
    """Fit each count against minutes, without the first turns."""
    late = rows[int(WARM * len(rows)) :]
    minutes = np.array([row["minutes"] for row in late])
    fits: dict[str, dict[str, float | bool]] = {}
    for name, limit in FLAT.items():
        counts = np.array([row[name] for row in late])
        fit = stats.linregress(minutes, counts)
        reach = stats.t.ppf(0.975, len(late) - 2) * fit.stderr if np.ptp(counts) else 0.0  # a constant has no error
        low, high = fit.slope - reach, fit.slope + reach
        fits[name] = {"per_minute": fit.slope, "low": low, "high": high, "flat": bool(high <= limit)}
    return fits


def main() -> None:
    """Work until the time is over, and write what was counted after each turn."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path(__file__).parents[1] / "results" / "soak.json")
    args = parser.parse_args()
    began, rows = time.monotonic(), []
    with tempfile.TemporaryDirectory() as folder:
        photos = Path(folder) / "photos"
        write_photos(photos, np.random.default_rng(args.seed))
        while time.monotonic() - began < 60 * args.minutes:
            turn(photos, args.seed + len(rows))
            rows.append({"minutes": (time.monotonic() - began) / 60} | usage())
            report = {"date": time.strftime("%Y-%m-%d"), "turns": len(rows), "rows": rows}
            report["slopes"] = slopes(rows) if len(rows) >= 10 else {}
            args.out.write_text(json.dumps(report, indent=1) + "\n")
            print({name: round(value, 1) for name, value in rows[-1].items()}, flush=True)
    print(json.dumps(report["slopes"], indent=1))


if __name__ == "__main__":
    main()
