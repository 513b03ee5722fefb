"""Token merging: accuracy against images in a second, for a model and a labelled data set, as a table and a picture.

    python benchmarks/merging.py MODEL DATA [--merge 0 2 4 8] [--engine torch] [--images 2000] [--out FILE.png]

Accuracy is that of `vitrail.evaluate` with its 95% interval, on images drawn from the test split, or else of the val
split. Speed is that of passes of one batch of noise, each number of merged tokens once a round, in random order
(`contest.py`); ratios are to the first number, 0. With one thread it is the processor's own time that is measured,
which other programs disturb less.
"""

import argparse
import json
import statistics
import time
from pathlib import Path

import torch
from contest import machine, paired, race

import vitrail
from vitrail.runtime.choice import EngineChoice
from vitrail.runtime.engine import torch_engine
from vitrail.runtime.make import make_engine
from vitrail.runtime.timing import example_pixels


def measure(args: argparse.Namespace) -> list[dict[str, object]]:
    """Return a row for each number of merged tokens."""
    base, _ = torch_engine(vitrail.load(args.model))
    splits = vitrail.data.open_splits(args.data)
    data = splits.get("test") or splits.get("val") or next(iter(splits.values()))
    data = data.take(torch.randperm(len(data), generator=torch.Generator().manual_seed(0))[: args.images].numpy())
    engines = {
        merged: make_engine(base, EngineChoice(engine=args.engine, merge_tokens=merged), batch=args.batch)
        for merged in args.merge
    }
    pixels = example_pixels(base, args.batch)
    runs = {str(merged): (lambda engine=engine: engine.logits(pixels)) for merged, engine in engines.items()}
    clock = time.process_time if args.threads == 1 else time.perf_counter
    seconds = race(runs, args.rounds, clock=clock)
    rows = []
    for merged, engine in engines.items():
        labels = base.model.info.labels
        accuracy = vitrail.evaluate(engine, data, labels=labels).figures["accuracy"]
        times = seconds[str(merged)]
        faster = paired(times, seconds[str(args.merge[0])])
        rows.append(
            {
                "merged": merged,
                "accuracy": accuracy.value,
                "interval": [accuracy.low, accuracy.high],
                "images_per_second": args.batch / statistics.median(times),
                "faster": faster.median,
                "faster_interval": [faster.low, faster.high],
            }
        )
        print(
            f"{merged:4} merged: {accuracy.value:.1%} ({accuracy.low:.1%} to {accuracy.high:.1%}), {faster}", flush=True
        )
    return rows


def draw(rows: list[dict[str, object]], title: str, path: Path) -> None:
    """Draw accuracy against speed."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6, 4), layout="constrained")
    speeds = [row["images_per_second"] for row in rows]
    shares = [100 * row["accuracy"] for row in rows]
    low = [share - 100 * row["interval"][0] for share, row in zip(shares, rows, strict=True)]
    high = [100 * row["interval"][1] - share for share, row in zip(shares, rows, strict=True)]
    axes.errorbar(speeds, shares, yerr=[low, high], marker="o", capsize=3)
    for speed, share, row in zip(speeds, shares, rows, strict=True):
        axes.annotate(f"{row['merged']} merged", (speed, share), textcoords="offset points", xytext=(6, 6))
    axes.set(xlabel="images in a second", ylabel="accuracy in percent, with 95% intervals", title=title)
    figure.savefig(path, dpi=120)


def main() -> None:
    """Measure, print, draw and save."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("data")
    parser.add_argument("--merge", type=int, nargs="+", default=[0, 1, 2, 4, 6, 8], help="tokens in each block")
    parser.add_argument("--engine", default="torch")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--images", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("merging.png"))
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    rows = measure(args)
    title = f"Token merging, {Path(args.data).name}, {args.engine}, batch {args.batch}"
    draw(rows, title, args.out)
    args.out.with_suffix(".json").write_text(json.dumps(machine() | {"rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
