"""Measure how long loading a model of 300M parameters takes, and how much memory it holds.

    python benchmarks/load.py [--model L/16] [--repeats 3] [--folder /tmp] [--output benchmarks/results/load.json]

Each measurement is a fresh process with the file in the page cache: its seconds, and the peak of its resident memory
above what it had before, in units of the file's size. The yardstick is safetensors' own `load_file` and SHA-256.
"""

import argparse
import json
import platform
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

MEASURE = """
import hashlib, sys, time, resource
import torch, safetensors.torch, vitrail
import vitrail.checkpoint.files
torch.set_num_threads(1)
way, path = sys.argv[1:]
def status(key):
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(key)) * 1024
with open("/proc/self/clear_refs", "w") as file:
    file.write("5")  # start the peak anew
before, began = status("VmRSS"), time.perf_counter()
if way == "safetensors":
    state = safetensors.torch.load_file(path)
    with open(path, "rb") as file:
        hashlib.file_digest(file, "sha256").hexdigest()
    total = sum(tensor.sum().item() for tensor in state.values())  # touch every weight, as a first pass would
else:
    model = vitrail.load(path)
    total = sum(tensor.sum().item() for tensor in model.state_dict().values())
print(time.perf_counter() - began, status("VmHWM") - before, status("RssAnon"), total)
"""


def measure(way: str, path: Path, repeats: int) -> dict[str, float]:
    seconds, peaks = [], []
    for _ in range(repeats):
        done = subprocess.run(
            [sys.executable, "-c", MEASURE, way, str(path)], capture_output=True, text=True, check=True
        )
        second, peak, _, _ = map(float, done.stdout.split()[-4:])
        seconds.append(second)
        peaks.append(peak)
    weights = path if path.is_file() else path / "model.safetensors"
    size = weights.stat().st_size
    return {
        "seconds": round(min(seconds), 3),
        "median_seconds": round(statistics.median(seconds), 3),
        "peak_over_size": round(max(peaks) / size, 3),
        "bytes": size,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="L/16")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--folder", type=Path, default=None)
    parser.add_argument("--output", type=Path, default=None)
    arguments = parser.parse_args()
    import torch

    import vitrail

    results: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
        folder = Path(name)
        model = vitrail.create(arguments.model, seed=0)
        parameters = sum(parameter.numel() for parameter in model.parameters())
        paths = {"vitrail": "x.safetensors", "timm": "timm.safetensors", "huggingface": "hf", "google": "x.npz"}
        for to, file in paths.items():
            vitrail.save(model, folder / file, to=to)
            if to == "vitrail":
                results["safetensors + sha256"] = measure("safetensors", folder / file, arguments.repeats)
            results[to] = measure("vitrail", folder / file, arguments.repeats)
            print(to, results[to], flush=True)
    yardstick = results["safetensors + sha256"]
    print("safetensors + sha256", yardstick)
    report = {
        "command": " ".join(["python", "benchmarks/load.py", *sys.argv[1:]]),
        "model": arguments.model,
        "parameters": parameters,
        "torch": torch.__version__,
        "machine": f"{platform.machine()}, {platform.system()}",
        "time_over_yardstick": round(results["vitrail"]["seconds"] / yardstick["seconds"], 3),
        "results": results,
    }
    print(f"vitrail takes {report['time_over_yardstick']} times as long as safetensors' load and hashing")
    if arguments.output:
        arguments.output.write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
