"""What pre-training without labels is worth: each objective for N minutes, then few labels, against from scratch.

    python benchmarks/pretraining.py DATA --minutes 30 [--finetune-minutes 5] [--seeds 3] [--out runs/pretraining]

For each seed and objective: `vitrail pretrain` for --minutes, few-shot accuracy of the frozen features, then
`vitrail finetune` with 1%, 10% and 100% of the labels for --finetune-minutes. Against it, with the same total time and
the same labels: the same encoder from scratch, and the rule of `vitrail train`. Every part is a run in a folder of its
own under --out: called again, finished parts are read, and stopped ones resumed. Prints a table, and JSON at the end.
"""

import argparse
import json
import statistics
from pathlib import Path

import vitrail
from vitrail.base.settings import to_dict
from vitrail.runs.choose_pretraining import RULES


def pretrained(args: argparse.Namespace, objective: str, seed: int):
    return vitrail.pretrain(
        args.data,
        objective=objective,
        minutes=args.minutes,
        seed=seed,
        threads=args.threads,
        out=args.out / f"{objective}-{seed}",
    )


def finetuned(args: argparse.Namespace, start: Path, share: float, seed: int, name: str) -> float:
    run = vitrail.finetune(
        args.data,
        start=start,
        fraction=share,
        batch=args.batch,
        minutes=args.finetune_minutes,
        quick=True,
        seed=seed,
        threads=args.threads,
        out=args.out / f"{name}-{share:g}-{seed}",
    )
    assert run.accuracy is not None
    return run.accuracy


def scratch(args: argparse.Namespace, share: float, seed: int, name: str, settings: dict) -> float:
    run = vitrail.train(
        args.data,
        fraction=share,
        batch=args.batch,
        minutes=args.minutes + args.finetune_minutes,
        seed=seed,
        threads=args.threads,
        settings=settings,
        out=args.out / f"{name}-{share:g}-{seed}",
    )
    assert run.accuracy is not None
    return run.accuracy


def same_encoder(config) -> dict:
    """Return the settings that make `train` take the encoder of a run, with a head of its own."""
    own = {
        f"model.{name}": value for name, value in to_dict(config.model).items() if name not in ("kind", "num_classes")
    }
    return own | {"preprocessing.image_size": config.preprocessing.image_size}


def measure(args: argparse.Namespace) -> dict[str, dict[str, list[float]]]:
    figures: dict[str, dict[str, list[float]]] = {}

    def note(row: str, column: str, value: float) -> None:
        figures.setdefault(row, {}).setdefault(column, []).append(value)
        print(f"{row:24}{column:12}{value:8.2%}", flush=True)

    for seed in range(args.seeds):
        encoder: dict = {}
        for objective in args.objectives:
            run = pretrained(args, objective, seed)
            encoder = encoder or same_encoder(run.config)
            shots = vitrail.fewshot(run.model_file, args.data, shots=[args.shots], seeds=3, cache=False)
            note(objective, f"{args.shots} shots", shots.scores[0].mean)
            for share in args.shares:
                note(objective, f"{share:.0%}", finetuned(args, run.model_file, share, seed, f"{objective}-finetuned"))
        for share in args.shares:
            note("scratch, same encoder", f"{share:.0%}", scratch(args, share, seed, "scratch-same", encoder))
            note("scratch, the rule", f"{share:.0%}", scratch(args, share, seed, "scratch-rule", {}))
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--finetune-minutes", type=float, default=5.0)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--shots", type=int, default=10)
    parser.add_argument("--batch", type=int, default=None, help="images in a step with labels; 1%% may need fewer")
    parser.add_argument("--shares", type=float, nargs="+", default=[0.01, 0.1, 1.0])
    parser.add_argument("--objectives", nargs="+", choices=list(RULES), default=list(RULES))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("runs/pretraining"))
    args = parser.parse_args()
    figures = measure(args)
    columns = list(dict.fromkeys(column for row in figures.values() for column in row))
    print("\n" + f"{'':24}" + "".join(f"{column:>18}" for column in columns))
    for row, values in figures.items():
        cells = []
        for column in columns:
            scores = values.get(column, [])
            spread = statistics.stdev(scores) if len(scores) > 1 else 0.0
            cells.append(f"{100 * statistics.mean(scores):.2f} +- {100 * spread:.2f}" if scores else "-")
        print(f"{row:24}" + "".join(f"{cell:>18}" for cell in cells))
    print(json.dumps({"minutes": args.minutes, "finetune_minutes": args.finetune_minutes, "figures": figures}))


if __name__ == "__main__":
    main()
