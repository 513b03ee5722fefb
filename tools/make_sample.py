"""Make the embedded sample from Debian's package dataset-fashion-mnist.

    apt-get install dataset-fashion-mnist
    python tools/make_sample.py            # writes src/vitrail/data/sample/fashion-mnist.npz
    python tools/make_sample.py --check    # says whether that file holds what this program would write

The rule: of each class the first 600 training images and the first 100 test images, all in the order of the original
files.
"""

import argparse
import gzip
import sys
from pathlib import Path

import numpy as np

SOURCE = Path("/usr/share/datasets/fashion-mnist")
TARGET = Path(__file__).parent.parent / "src/vitrail/data/sample/fashion-mnist.npz"
CLASSES = ("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot")
COUNTS = {"train": ("train", 600), "test": ("t10k", 100)}


def make(source: Path) -> dict[str, np.ndarray]:
    """Choose the images."""
    arrays = {}
    for split, (front, count) in COUNTS.items():
        with gzip.open(source / f"{front}-images-idx3-ubyte.gz") as file:
            images = np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 28, 28)
        with gzip.open(source / f"{front}-labels-idx1-ubyte.gz") as file:
            labels = np.frombuffer(file.read(), np.uint8, offset=8)
        chosen = np.sort(np.concatenate([np.flatnonzero(labels == number)[:count] for number in range(len(CLASSES))]))
        arrays |= {f"x_{split}": images[chosen], f"y_{split}": labels[chosen]}
    return arrays | {"class_names": np.array(CLASSES)}


def main() -> None:
    """Write the file, or compare with it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", type=Path, default=SOURCE)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    arrays = make(arguments.source)
    if arguments.check:
        with np.load(TARGET, allow_pickle=False) as stored:
            same = set(stored) == set(arrays) and all(np.array_equal(stored[name], arrays[name]) for name in arrays)
        print("the sample is what this program makes" if same else "the sample differs from what this program makes")
        sys.exit(not same)
    np.savez_compressed(TARGET, **arrays)
    print(f"{TARGET.name}: {TARGET.stat().st_size} bytes")


if __name__ == "__main__":
    main()
