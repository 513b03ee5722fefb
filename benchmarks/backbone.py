"""What a backbone is worth: few-shot and fine-tuned, beside random weights and training from scratch in equal time.

    python benchmarks/backbone.py MODEL TASK [TASK ...] [--minutes 1] [--seeds 3] [--fraction 0.04]
        [--size 96 128] [--out FILE]

A TASK is NAME=DATA, such as `new=photos20`. Few-shot accuracy is that of 5 images of each class, of the model and of
the same network with random weights; the gain is corrected for chance, divided by 1 - 1/K. Then a --fraction of the
images of each class is fine-tuned by `vitrail finetune` for --minutes, and learned by `vitrail train` for as long.
--size lists image sizes to fine-tune at beside the model's own. Figures that are in FILE are not measured again.
"""

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import vitrail
from vitrail.base.files import write_whole
from vitrail.model.build import build

SHOTS = 5


class Figures:
    """Lists of accuracies by name, in a file that is written after each."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.values: dict[str, list[float]] = json.loads(path.read_text()) if path and path.exists() else {}

    def measure(self, name: str, work: Callable[[], list[float]]) -> list[float]:
        """Take figures that are known, or measure and keep them."""
        if name not in self.values:
            began = time.monotonic()
            self.values[name] = [round(value, 4) for value in work()]
            print(f"{name}: {spread(self.values[name])} ({time.monotonic() - began:.0f} s)", flush=True)
            if self.path:
                write_whole(self.path, (json.dumps(self.values, indent=1) + "\n").encode())
        return self.values[name]


def spread(values: list[float]) -> str:
    """Write the mean with the deviation."""
    deviation = f" +- {100 * statistics.stdev(values):.2f}" if len(values) > 1 else ""
    return f"{100 * statistics.mean(values):.2f}{deviation}"


def few_shot(model: object, data: str) -> list[float]:
    """Return the accuracies of three draws."""
    (score,) = vitrail.fewshot(model, data, shots=[SHOTS], preprocessing="model", cache=False).scores
    return list(score.accuracies)


class Bench:
    """The measurements of one task."""

    def __init__(self, args: argparse.Namespace, task: str, data: str, folder: Path) -> None:
        self.args, self.task, self.data, self.folder = args, task, data, folder
        self.which = f"{args.fraction:.3g} of the images" if args.fraction < 1 else "all images"

    def runs(self, verb: Callable[..., Any], name: str, **settings: object) -> list[float]:
        """Return the accuracies of all seeds."""
        outs = {seed: self.folder / f"{self.task}-{name}-{seed}" for seed in range(self.args.seeds)}
        common = {
            "minutes": self.args.minutes,
            "threads": self.args.threads,
            "fraction": self.args.fraction,
            **settings,
        }
        return [float(verb(self.data, seed=seed, out=out, **common).accuracy) for seed, out in outs.items()]

    def measure(self, figures: Figures) -> None:
        """Measure everything, and print the gains."""
        model, args = vitrail.load(self.args.model), self.args
        blank = build(model.config, seed=0)
        blank.info = model.info
        shots = f"{self.task}, {SHOTS} shots"
        ours = figures.measure(f"{shots}, backbone", lambda: few_shot(model, self.data))
        random = figures.measure(f"{shots}, random weights", lambda: few_shot(blank, self.data))
        classes = len(vitrail.data.open_splits(self.data)["train"].labels)
        gain = (statistics.mean(ours) - statistics.mean(random)) / (1 - 1 / classes)
        print(f"{self.task}: {100 * gain:.1f} points above random weights, corrected for chance")
        row = f"{self.task}, {self.which}"
        tune = partial(self.runs, vitrail.finetune, start=args.model)
        tuned = figures.measure(f"{row}, fine-tuned", partial(tune, "fine-tuned"))
        scratch = figures.measure(f"{row}, from scratch", partial(self.runs, vitrail.train, "scratch"))
        print(f"{self.task}: {100 * (statistics.mean(tuned) - statistics.mean(scratch)):.1f} points above from scratch")
        for size in args.size:
            figures.measure(f"{row}, fine-tuned at {size} px", partial(tune, f"at-{size}", image_size=size))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("tasks", nargs="+", type=lambda text: tuple(text.split("=", 1)))
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--fraction", type=float, default=1.0)
    parser.add_argument("--size", type=int, nargs="+", default=[])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    figures = Figures(args.out)
    for task, data in args.tasks:
        with tempfile.TemporaryDirectory() as folder:
            Bench(args, task, data, Path(folder)).measure(figures)


if __name__ == "__main__":
    main()
