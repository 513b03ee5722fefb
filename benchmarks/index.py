"""Measure how long a manifest of ten million images takes to open, and how much memory that holds.

    python benchmarks/index.py [--lines 10000000] [--folder /tmp] [--output benchmarks/results/index.json]

The CSV has lines like `train/n01234567/n01234567_00001234.JPEG,n01234567,train` in 1000 classes. The files that are
looked for are made (a manifest of that size is checked by a sample, see docs/data.md), the others are not. Each
measurement is a fresh process on one thread: seconds of `vitrail.data.open`, and the peak of resident memory with and
without what the interpreter and torch hold before it. Then the same from a saved index, and the memory that a forked
worker adds when it reads names and labels all over the list.
"""

import argparse
import json
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

MEASURE = """
import json, os, sys, time
import torch
torch.set_num_threads(1)
import vitrail.data
import vitrail.data.catalog
def status(key):
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(key)) / 1024
before, began = status("VmRSS"), time.perf_counter()
data = vitrail.data.open(sys.argv[1], split="train")
seconds = time.perf_counter() - began
found = {"images": len(data), "classes": len(data.labels), "seconds": round(seconds, 2),
         "peak_mb": round(status("VmHWM")), "before_mb": round(before), "after_mb": round(status("VmRSS"))}
began = time.perf_counter()
for index in range(0, len(data), 101):
    data.name(index)
found["name_us"] = round(1e6 * (time.perf_counter() - began) / len(range(0, len(data), 101)), 2)
read, write = os.pipe()
if os.fork() == 0:
    def private():
        lines = open("/proc/self/smaps_rollup").read().splitlines()
        return sum(int(line.split()[1]) for line in lines if line.startswith("Private_Dirty"))
    first = private()
    for epoch in range(20):
        for index in range(epoch, len(data), 1009):
            data.name(index), int(data.targets[index])
    os.write(write, str((private() - first) / 1024).encode())
    os._exit(0)
os.wait()
found["worker_adds_mb"] = round(float(os.read(read, 100)), 1)
print(json.dumps(found))
"""


def make(folder: Path, lines: int) -> Path:
    """Write the manifest, and the files that opening it looks for."""
    from vitrail.data.sources.present import SAMPLE

    path = folder / "images.csv"
    with path.open("w") as file:
        file.write("path,label,split\n")
        for start in range(0, lines, 100_000):
            numbers = range(start, min(start + 100_000, lines))
            file.write("".join(f"{_name(number)},{_class(number)},{_split(number)}\n" for number in numbers))
    for number in np.unique(np.linspace(0, lines - 1, SAMPLE).astype(np.int64)):
        image = folder / _name(int(number))
        image.parent.mkdir(parents=True, exist_ok=True)
        image.touch()
    return path


def _class(number: int) -> str:
    return f"n{(number * 2654435761) % 1000 + 1_000_000:08d}"


def _split(number: int) -> str:
    return "train" if number // 1000 % 20 else "val"


def _name(number: int) -> str:
    return f"train/{_class(number)}/{_class(number)}_{number:08d}.JPEG"


def measure(path: Path) -> dict[str, float]:
    done = subprocess.run([sys.executable, "-c", MEASURE, str(path)], capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=int, default=10_000_000)
    parser.add_argument("--folder", type=Path, default=None)
    parser.add_argument("--output", type=Path, default=None)
    arguments = parser.parse_args()
    import torch

    import vitrail.data

    with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
        path = make(Path(name), arguments.lines)
        results = {"csv": measure(path)}
        print("csv", results["csv"], flush=True)
        index = Path(name) / "images.index"
        vitrail.data.save_index(path, index)
        results["saved index"] = measure(index)
        print("saved index", results["saved index"], flush=True)
        sizes = {"csv_bytes": path.stat().st_size, "index_bytes": index.stat().st_size}
    report = {
        "command": " ".join(["python", "benchmarks/index.py", *sys.argv[1:]]),
        "lines": arguments.lines,
        "torch": torch.__version__,
        "numpy": np.__version__,
        "machine": f"{platform.machine()}, {platform.system()}",
        **sizes,
        "results": results,
    }
    if arguments.output:
        arguments.output.write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
