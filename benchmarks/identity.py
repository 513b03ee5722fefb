"""Measure what it costs to know data again: the digest of paths, sizes and times of files, or of the numbers of arrays.

    python benchmarks/identity.py [--files 200000] [--gigabytes 1] [--folder /tmp] [--output .../results/identity.json]

The files are empty, 1,000 in a folder; their entries are in the system's memory after they were made. A cold disk adds
its own time for each entry, which reading the images needs anyway.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path

import numpy as np

from vitrail.data.dataset import Dataset, Pictures
from vitrail.data.names import names_of
from vitrail.data.sources.arrays import ArrayPictures, Part
from vitrail.data.sources.files import Files, real_folders
from vitrail.runs.data import files_digest, names_digest


def dataset(pictures: Pictures) -> Dataset:
    rows = np.arange(len(pictures))
    return Dataset(pictures=pictures, rows=rows, targets=rows * 0, labels=("one",), where="made")


def timed(work: object, *arguments: object) -> float:
    began = time.perf_counter()
    work(*arguments)  # type: ignore[operator]
    return time.perf_counter() - began


def make_files(folder: Path, count: int) -> Files:
    names = []
    for number in range(count):
        name = f"{number // 1000:06}/n01234567_{number:08}.JPEG"
        if number % 1000 == 0:
            (folder / name).parent.mkdir()
        (folder / name).touch()
        names.append(name.encode())
    return Files(folder, names_of(names), real_folders(folder))


def main() -> None:
    """Measure, print and save."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=200_000)
    parser.add_argument("--gigabytes", type=float, default=1.0)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results" / "identity.json")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        files = dataset(make_files(Path(folder), args.files))
        by_file = min(timed(files_digest, files) for _ in range(3))
        by_name = min(timed(names_digest, files) for _ in range(3))
    images = np.zeros((int(args.gigabytes * 2**30 / (32 * 32 * 3)), 32, 32, 3), np.uint8)
    arrays = dataset(ArrayPictures("made", [Part("x", None, images, None)]))
    by_array = min(timed(files_digest, arrays) for _ in range(3))
    results = {
        "date": time.strftime("%Y-%m-%d"),
        "files": args.files,
        "microseconds a file": round(1e6 * by_file / args.files, 2),
        "microseconds a name": round(1e6 * by_name / args.files, 2),
        "seconds a GiB of 32x32 images": round(by_array / args.gigabytes, 2),
    }
    print(json.dumps(results, indent=1))
    args.output.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
