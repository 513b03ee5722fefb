"""How often a label in doubt is wrong: labels are exchanged by chance, and `vitrail data --features` judges them.

    python benchmarks/label_doubts.py DATA [--model backbone] [--wrong 0.05] [--images 100] [--seeds 3]

Of the training split --images of each class are taken, of which a share gets another class. Printed are, as means over
seeds: images in doubt, how many of them are wrong, how many of the wrong ones are among them, and the share of labels
that the features confirm.
"""

import argparse
import statistics

import numpy as np
import torch

import vitrail
from vitrail.base.ranks import Ranks
from vitrail.evaluation.doubts import label_doubts
from vitrail.evaluation.extractor import Extractor
from vitrail.evaluation.features import feature_preprocessing
from vitrail.runtime.engine import torch_engine


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--model", default="backbone")
    parser.add_argument("--wrong", type=float, default=0.05)
    parser.add_argument("--images", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=3)
    args = parser.parse_args()
    dataset = vitrail.data.open_splits(args.data)["train"]
    engine, _ = torch_engine(vitrail.load(args.model).eval())
    extractor = Extractor(engine=engine, preprocessing=feature_preprocessing(engine.preprocessing), ranks=Ranks())
    features = extractor(dataset).values
    rows: list[list[float]] = []
    for seed in range(args.seeds):
        chance = np.random.default_rng(seed)
        own = [chance.permutation(np.flatnonzero(dataset.targets == each)) for each in range(len(dataset.labels))]
        chosen = np.concatenate([images[: args.images] for images in own])
        labels = dataset.targets[chosen].astype(np.int64)
        wrong = chance.random(len(labels)) < args.wrong
        labels[wrong] = (labels[wrong] + chance.integers(1, len(own), wrong.sum())) % len(own)
        doubts = label_doubts(features[torch.from_numpy(chosen)], labels, len(own), seed=seed)
        assert doubts is not None
        count, right = len(doubts.doubtful), int(wrong[doubts.doubtful].sum())
        rows.append([count, right / max(count, 1), right / max(int(wrong.sum()), 1), doubts.agreement])
        print(f"seed {seed}: {len(labels)} images, {wrong.sum()} wrong, {count} in doubt, {right} of them wrong")
    count, precision, recall, agreement = (statistics.mean(column) for column in zip(*rows, strict=True))
    print(f"{count:.1f} in doubt, {precision:.0%} of them wrong, which are {recall:.0%} of all that are wrong")
    print(f"{agreement:.0%} of the labels are confirmed")


if __name__ == "__main__":
    main()
