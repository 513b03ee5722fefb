"""What transfer gains on real data, on two cores: fine-tuning against training from scratch, resolution, shots.

    python benchmarks/transfer.py MODEL PHOTOS [--steps 120] [--only NAME ...]

MODEL is a small model that `vitrail train cifar10.npz --minutes 10` has made; PHOTOS a folder of photos with train/ and
val/. Every line is one or more runs of the command, with 3 seeds, the same number of steps, the same batch and the same
architecture on both sides; fine-tuning's sweep comes on top of its time and is listed by itself.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SEEDS = (0, 1, 2)


def vitrail(*words: str) -> tuple[dict[str, object], float]:
    """Run a command, and return its JSON and its seconds."""
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "vitrail", *words, "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=True,
    )
    return json.loads(done.stdout), time.perf_counter() - start


TABLE_4 = ("--optimizer", "sgd", "--weight-decay", "0", "--rates", "0.003", "0.01", "0.03", "0.1")
"""The paper's protocol, also for a small model."""


def finetuned(model: str, data: str, *words: str) -> dict[str, object]:
    """Fine-tune with the sweep and three seeds."""
    with tempfile.TemporaryDirectory() as folder:
        words = (
            "finetune",
            data,
            "--from",
            model,
            *TABLE_4,
            *words,
            "--runs",
            str(len(SEEDS)),
            "--out",
            f"{folder}/run",
        )
        result, seconds = vitrail(*words)
    row = {"accuracies": result["accuracies"], "rate": result["rate"], "sweep": result["sweep"]}
    return {"command": shown(words, folder)} | row | {"seconds": seconds, "seconds_of_one": result["cost"]["seconds"]}


def scratch(data: str, *words: str) -> dict[str, object]:
    """Train from scratch with three seeds; subsets stay those of the first."""
    accuracies, spent = [], []
    for seed in SEEDS:
        with tempfile.TemporaryDirectory() as folder:
            all_words = ("train", data, *words, "--seed", str(seed), "--out", f"{folder}/run")
            result, _ = vitrail(*all_words, "--set", "data.split_seed=0")
        accuracies.append(result["accuracy"])
        spent.append(result["cost"]["seconds"])
    return {"command": shown(all_words, folder), "accuracies": accuracies, "seconds_of_one": statistics.mean(spent)}


def shots(model: str, data: str) -> dict[str, object]:
    """Measure accuracy by shots."""
    words = ("fewshot", model, data, "--shots", "1", "5", "10", "25", "--no-cache")
    result, seconds = vitrail(*words)
    return {"command": shown(words, ""), "seconds": seconds, "images": result["images"], "results": result["results"]}


def shown(words: tuple[str, ...], folder: str) -> str:
    """Write a command as a person would type it."""
    names = [Path(word).name if word.startswith("/") else word for word in words]
    return "vitrail " + " ".join(name if not folder or name != "run" else "RUN" for name in names)


def main() -> None:
    """Run, print and save."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("photos")
    parser.add_argument("--steps", default="120")
    parser.add_argument("--only", nargs="+")
    args = parser.parse_args()
    model, photos, length = args.model, args.photos, ("--steps", args.steps, "--evaluate-every", args.steps)
    little = ("--fraction", "0.02", "--batch", "64")  # 1,200 of the 60,000 images, 120 of each class
    batch = ("--batch", "30")
    lines = {
        "photos, 32 px, scratch": lambda: scratch(photos, *length, *batch, "--image-size", "32"),
        "photos, 32 px, transfer": lambda: finetuned(model, photos, *length, *batch, "--image-size", "32"),
        "photos, 64 px, scratch": lambda: scratch(photos, *length, *batch, "--image-size", "64"),
        "photos, 64 px, transfer": lambda: finetuned(model, photos, *length, *batch, "--image-size", "64"),
        "fashion, scratch": lambda: scratch("fashion-mnist", *length, *little, "--image-size", "32", "--channels", "3"),
        "fashion, transfer": lambda: finetuned(model, "fashion-mnist", *length, *little),
        "photos, shots": lambda: shots(model, photos),
        "fashion, shots": lambda: shots(model, "fashion-mnist"),
    }
    path = Path(__file__).parent / "results" / "transfer.json"
    stored = json.loads(path.read_text()) if path.exists() else {}
    for name, run in lines.items():
        if args.only and name not in args.only:
            continue
        row = stored[name] = run() | {"date": time.strftime("%Y-%m-%d")}
        if "accuracies" in row:
            percentages = [100 * value for value in row["accuracies"]]
            print(
                f"{name:26}{statistics.mean(percentages):7.2f} +- {statistics.stdev(percentages):.2f}%"
                f"{row['seconds_of_one']:8.1f} s a run  rate {row.get('rate', '-')}",
                flush=True,
            )
        else:
            print(f"{name:26}{json.dumps(row['results'])[:300]}", flush=True)
        path.write_text(json.dumps(stored, indent=1) + "\n")


if __name__ == "__main__":
    main()
