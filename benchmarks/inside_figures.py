"""The figures of docs/inside.md: what `inspect`, `stress` and `explain` measure on the models of `inside.py`.

    python benchmarks/inside_figures.py runs/inside cifar10.npz --name cifar10 --out runs/figures [--seeds 0 1 2]

For each seed its Vision Transformer, hybrid and ResNet are looked at side by side; pages and figures are kept under
--out, and what is there is not measured again. Printed are Markdown rows: the mean over seeds with their deviation.
`explain` gets the first --pictures test images in steps of 7; `stress` and `inspect` draw theirs.
"""

import argparse
import json
import statistics
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import vitrail
from vitrail.data.catalog import open_splits

KINDS = ("vit", "hybrid", "resnet")
TESTS = ("occlusion", "shuffle", "texture", "corruptions", "pgd", "patch", "resolution")
Rows = dict[str, dict[str, list[float]]]


def main() -> None:
    """Measure and print."""
    args = parsed()
    args.out.mkdir(parents=True, exist_ok=True)
    rows: dict[str, Rows] = defaultdict(lambda: defaultdict(lambda: defaultdict(list)))
    for seed in args.seeds:
        files = {kind: args.runs / f"{args.name}-{kind}-{seed}" / "model.safetensors" for kind in KINDS}
        for kind, file in files.items():
            result = json.loads(file.with_name("result.json").read_text())
            rows["accuracy"]["all test images"][kind].append(100 * result["figures"]["accuracy"])
        add_inspection(rows["inside"], measured(args, f"inspect-{seed}", inspected(args, files)))
        add_stress(rows["stress, % of the clean accuracy"], measured(args, f"stress-{seed}", stressed(args, files)))
        for kind, file in files.items():
            answer = measured(args, f"explain-{kind}-{seed}", explained(args, file))
            for method, figures in answer["methods"].items():
                rows["gain over random maps"][method][kind].append(figures["gain"]["value"])
    for title, part in rows.items():
        print(f"\n| {title} | ViT | hybrid | ResNet |\n|---|---|---|---|")
        for name, cells in part.items():
            print(f"| {name} | " + " | ".join(spread(cells.get(kind, [])) for kind in KINDS) + " |")


def measured(args: argparse.Namespace, name: str, measure: Callable[[Path], Any]) -> dict[str, Any]:
    """Return figures that are known, or measure and keep them."""
    folder = args.out / f"{args.name}-{name}"
    kept = folder / "kept.json"
    if not kept.is_file():
        figures = measure(folder).to_dict()
        kept.write_text(json.dumps(figures))
    return json.loads(kept.read_text())


def inspected(args: argparse.Namespace, files: dict[str, Path]) -> Callable[[Path], Any]:
    """Return what inspects the three models."""
    return lambda out: vitrail.inspect(
        list(files.values()), data=args.data, images=args.images, out=out, force=True, threads=args.threads
    )


def stressed(args: argparse.Namespace, files: dict[str, Path]) -> Callable[[Path], Any]:
    """Return what stresses the three models."""
    return lambda out: vitrail.stress(
        list(files.values()),
        args.data,
        tests=TESTS,
        images=args.images,
        severities=[1, 3, 5],
        steps=5,
        out=out,
        force=True,
        threads=args.threads,
    )


def explained(args: argparse.Namespace, file: Path) -> Callable[[Path], Any]:
    """Return what explains images by every method that fits the model."""

    def explain(out: Path) -> Any:
        splits = open_splits(args.data)
        test = splits.get("test") or splits["val"]
        pictures = [test.image(7 * number) for number in range(args.pictures)]
        return vitrail.explain(file, pictures, compare=True, out=out, force=True, threads=args.threads)

    return explain


def add_inspection(rows: Rows, figures: dict[str, Any]) -> None:
    """Add what an inspection shows of each model."""
    panels = figures["panels"]
    for name, panel in panels.get("positions", {}).items():
        for part, cosine in panel["mean_cosines"]["input"].items():
            rows[f"cosine of positions, {part}"][kind_of(name)].append(cosine)
    for name, panel in panels["distance"].items():
        kind, pixels = kind_of(name), panel["pixels"]
        rows["distance in pixels of equal attention"][kind].append(panel["equally"])
        for block in (0, len(pixels) - 1):
            place = "last" if block else "first"
            rows[f"distance, {place} block, mean over heads"][kind].append(statistics.mean(pixels[block]))
            rows[f"distance, {place} block, nearest head"][kind].append(min(pixels[block]))
    for name, panel in panels["filters"].items():
        rows["variance of 28 filters, %"][kind_of(name)].append(100 * sum(panel["explained_variance"]))
    for name, panel in panels["rank"].items():
        rows["rank of the representation"][kind_of(name)].append(panel["representation"])
    for name, panel in panels["dead"].items():
        rows["dead units"][kind_of(name)].append(sum(layer["dead"] for layer in panel.values()))
    for name, panel in panels.get("importance", {}).items():
        kind, first = kind_of(name), "block 0, attention"
        lost = {
            part: 100 * (panel["accuracy"] - without["accuracy"])
            for part, without in panel["without"].items()
            if "head" not in part
        }
        if first in lost:
            rows["points lost without the first attention"][kind].append(lost.pop(first))
        rows["points lost without the costliest other branch"][kind].append(max(lost.values()))
    for name, panel in panels.get("pooling", {}).items():
        for part, accuracy in panel.items():
            rows[f"least squares on the {part}, %"][kind_of(name)].append(100 * accuracy)


def add_stress(rows: Rows, figures: dict[str, Any]) -> None:
    """Add which share of the clean accuracy is left, as a mean over the levels of each test."""
    corruptions: dict[str, list[float]] = defaultdict(list)
    for model in figures["models"]:
        kind, clean = kind_of(model["model"]), model["clean"]["value"]
        rows["clean images, accuracy"][kind].append(100 * clean)
        for name, test in model["tests"].items():
            left = 100 * statistics.mean(level["value"] for level in test["levels"]) / clean
            if test["group"] == "corruptions":
                corruptions[kind].append(left)
            else:
                rows[name][kind].append(left)
    for kind, shares in corruptions.items():
        rows["15 corruptions, severities 1, 3, 5"][kind].append(statistics.mean(shares))


def kind_of(name: str) -> str:
    """Return the kind of model that a path is of."""
    return next(kind for kind in KINDS if f"-{kind}-" in name)


def spread(values: list[float]) -> str:
    """Write the mean with the deviation over seeds."""
    if not values:
        return ""
    return f"{statistics.mean(values):.3g}" + (f" ± {statistics.stdev(values):.2g}" if len(values) > 1 else "")


def parsed() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path)
    parser.add_argument("data")
    parser.add_argument("--name", required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--images", type=int, default=200)
    parser.add_argument("--pictures", type=int, default=12)
    parser.add_argument("--threads", type=int)
    return parser.parse_args()


if __name__ == "__main__":
    main()
