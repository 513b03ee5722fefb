"""What pre-training without labels is worth: each objective for N minutes, then few labels, against from scratch.

    python benchmarks/pretraining.py DATA [--other OTHER] [--minutes 30] [--finetune-minutes 5] [--seeds 0 1 2]

One command runs the whole study and prints before the first step how long it will take: with its defaults nine to ten
hours a seed. For each seed there are these starts, each of --minutes (but for the shorter one):

| start                                                     | part       |
|-----------------------------------------------------------|------------|
| masked-patch, mae, dino, moco, by the rule of `pretrain`  | objectives |
| masked-patch with the targets `downsized` and `patch`     | targets    |
| masked-patch with 15% of patches corrupted                | rate       |
| masked-patch for a third of the minutes                   | steps      |
| supervised, by `vitrail train` on other data (--other)    | supervised |
| none: from scratch, by the rule of `vitrail train`        | scratch    |
| none: from scratch, with the encoder of the objectives    | encoder    |

Each start is measured by few-shot accuracy of its frozen features, and by `vitrail finetune` for --finetune-minutes
with 1%, 10% and 100% of the labels. Against them, with the same labels and the same total time: the parts `scratch` and
`encoder`, which for DINO and MoCo are nearly the same. All runs are folders under
--out, and every figure is written to figures.json there at once: called again after any stop, what is finished is read
and the rest resumes. With figures.json alone, also on another machine, only what it lacks is trained.
"""

import argparse
import json
import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

import vitrail
from vitrail.base.files import write_whole
from vitrail.base.settings import to_dict
from vitrail.runs.choose_pretraining import RULES
from vitrail.training.endings import StoppedError

PARTS = ("objectives", "targets", "rate", "steps", "supervised", "scratch", "encoder")
RULE, ENCODER = "scratch, the rule", "scratch, same encoder"
TOTAL = "all labels"


@dataclass(frozen=True, kw_only=True)
class Start:
    """A model to start from: what it learns, and for how long."""

    name: str
    minutes: float
    objective: str | None = None
    """None is supervised, on other data."""
    settings: dict[str, Any] = field(default_factory=dict)


def starts(args: argparse.Namespace) -> list[Start]:
    """List what is pre-trained for every seed."""
    masked = {"objective": "masked-patch", "minutes": args.minutes}
    parts = {
        "objectives": [Start(name=name, objective=name, minutes=args.minutes) for name in args.objectives],
        "targets": [
            Start(name=f"masked-patch, {target}", settings={"objective.target": target}, **masked)
            for target in ("downsized", "patch")
        ],
        "rate": [Start(name="masked-patch, rate 0.15", settings={"objective.rate": 0.15}, **masked)],
        "steps": [Start(name="masked-patch, a third of the time", objective="masked-patch", minutes=args.minutes / 3)],
        "supervised": [Start(name="supervised, other data", minutes=args.minutes)] if args.other else [],
        "scratch": [],
        "encoder": [],
    }
    return [start for part in args.parts for start in parts[part]]


def scratch_rows(args: argparse.Namespace) -> list[str]:
    """List what is trained from scratch."""
    rows = {"scratch": RULE, "encoder": ENCODER}
    return [row for part, row in rows.items() if part in args.parts]


class Study:
    """The figures of a study, by seed, row and column, in a file that is written after each."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args, self.path = args, args.out / "figures.json"
        stored = json.loads(self.path.read_text()) if self.path.exists() else {}
        self.figures: dict[str, float] = stored.get("figures", {})
        self.encoder: dict[str, Any] = stored.get("encoder", {})

    def measure(self, seed: int, row: str, column: str, measurement: Callable[[], float]) -> None:
        """Take a figure that is known, or measure and keep it."""
        name = f"{seed}/{row}/{column}"
        if name not in self.figures:
            self.figures[name] = measurement()
            self.path.parent.mkdir(parents=True, exist_ok=True)
            contents = {"encoder": self.encoder, "figures": self.figures}
            write_whole(self.path, (json.dumps(contents, indent=1) + "\n").encode())
        print(f"seed {seed}  {row:36}{column:12}{self.figures[name]:8.2%}", flush=True)

    def run(self) -> None:
        """Measure everything, seed by seed."""
        args = self.args
        for seed in args.seeds:
            for start in starts(args):
                folder = args.out / f"{start.name.replace(', ', '-').replace(' ', '-')}-{seed}"
                model = cache(partial(self.pretrained, start, folder, seed))
                self.measure(seed, start.name, f"{args.shots} shots", partial(self.few_shot, model))
                for share in args.shares:
                    finetuned = partial(self.finetuned, model, folder, share, seed)
                    self.measure(seed, start.name, label(share), finetuned)
            for row in scratch_rows(args):
                for share in args.shares:
                    self.measure(seed, row, label(share), partial(self.scratch, row, share, seed))

    def pretrained(self, start: Start, folder: Path, seed: int) -> Path:
        """Return the model file of a start, trained when the first figure asks for it."""
        common = {"minutes": start.minutes, "seed": seed, "threads": self.args.threads, "out": folder}
        if start.objective is None:
            return vitrail.train(self.args.other, **common).model_file
        run = vitrail.pretrain(self.args.data, objective=start.objective, settings=start.settings, **common)
        self.encoder = self.encoder or same_encoder(run.config)
        return run.model_file

    def few_shot(self, model: Callable[[], Path]) -> float:
        """Return the accuracy of least squares on the features of a few images of each class."""
        return vitrail.fewshot(model(), self.args.data, shots=[self.args.shots], seeds=3, cache=False).scores[0].mean

    def finetuned(self, model: Callable[[], Path], folder: Path, share: float, seed: int) -> float:
        """Return the accuracy after fine-tuning with a share of the labels, by the rule of `vitrail finetune`."""
        return accuracy(
            vitrail.finetune(
                self.args.data,
                start=model(),
                fraction=share,
                batch=self.args.batch,
                minutes=self.args.finetune_minutes,
                seed=seed,
                threads=self.args.threads,
                out=folder.with_name(f"{folder.name}-finetuned-{share:g}"),
            )
        )

    def scratch(self, row: str, share: float, seed: int) -> float:
        """Return the accuracy of training with a share of the labels for the whole time."""
        return accuracy(
            vitrail.train(
                self.args.data,
                fraction=share,
                batch=self.args.batch,
                minutes=self.args.minutes + self.args.finetune_minutes,
                seed=seed,
                threads=self.args.threads,
                settings=self.encoder if row == ENCODER else {},
                out=self.args.out / f"{row.replace(', ', '-').replace(' ', '-')}-{share:g}-{seed}",
            )
        )

    def show(self) -> None:
        """Print means over seeds with their spread."""
        cells: dict[tuple[str, str], list[float]] = {}
        for name, value in self.figures.items():
            _, row, column = name.split("/")
            cells.setdefault((row, column), []).append(value)
        rows, columns = (list(dict.fromkeys(names)) for names in zip(*cells, strict=True))
        print("\n" + f"{'':38}" + "".join(f"{column:>18}" for column in columns))
        for row in rows:
            print(f"{row:38}" + "".join(f"{spread(cells.get((row, column), [])):>18}" for column in columns))


def accuracy(run: Any) -> float:
    """Return the accuracy of a run on its test images."""
    if run.accuracy is None:
        raise SystemExit("the data have no labels to be measured with; give data with labels.")
    return float(run.accuracy)


def label(share: float) -> str:
    """Name a share of the labels."""
    return TOTAL if share == 1 else f"{share:.3g} of labels"


def spread(values: list[float]) -> str:
    """Write the mean with the deviation over seeds."""
    if not values:
        return "-"
    deviation = f" +- {100 * statistics.stdev(values):.2f}" if len(values) > 1 else ""
    return f"{100 * statistics.mean(values):.2f}{deviation}"


def same_encoder(config: Any) -> dict[str, Any]:
    """Return the settings that make `train` take the encoder of a run, with a head of its own."""
    own = {
        f"model.{name}": value for name, value in to_dict(config.model).items() if name not in ("kind", "num_classes")
    }
    return own | {"preprocessing.image_size": config.preprocessing.image_size}


def hours(args: argparse.Namespace) -> float:
    """Return how long the whole study takes, without few-shot evaluations, which take seconds."""
    learning = sum(start.minutes + len(args.shares) * args.finetune_minutes for start in starts(args))
    scratch = len(scratch_rows(args)) * len(args.shares) * (args.minutes + args.finetune_minutes)
    return len(args.seeds) * (learning + scratch) / 60


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--other", help="data with labels for supervised pre-training")
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--finetune-minutes", type=float, default=5.0)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--shots", type=int, default=10)
    parser.add_argument("--batch", type=int, default=None, help="images in a step with labels; 1%% may need fewer")
    parser.add_argument("--shares", type=float, nargs="+", default=[0.01, 0.1, 1.0])
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--objectives", nargs="+", choices=list(RULES), default=list(RULES))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("runs/pretraining"))
    args = parser.parse_args()
    print(f"{len(starts(args))} starts, {len(args.seeds)} seeds: about {hours(args):.1f} hours, less what is finished.")
    study = Study(args)
    try:
        study.run()
    except (KeyboardInterrupt, StoppedError):
        sys.exit("stopped; the same command resumes.")
    study.show()


if __name__ == "__main__":
    main()
