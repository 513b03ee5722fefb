"""Predicting with an S/16 at 224 px: the first answer, and a folder of photos, beside the Hugging Face pipeline.

    benchmarks/peers.sh /tmp/peers && /tmp/peers/bin/python benchmarks/cold_start.py PHOTOS [--rounds 7] [--images 256]

PHOTOS is a folder with JPEG files below it. Both sides have the same random weights, ours in one file, theirs in the
folder that `vitrail convert --to huggingface` writes, and the same preprocessing (square, bilinear, antialiased); that
their answers agree is checked first.

First answer: the seconds from starting a process to the line with its answer. Ours is `python -m vitrail predict MODEL
photo.jpg`; theirs is `pipeline("image-classification", model=FOLDER)(photo)`, once with torchvision's image processor
and once with Pillow's, as on a machine without torchvision, which starts sooner. The folder: images per second of one
pass in a process that has warmed up, with the writing of a CSV on our side. The pipeline gets the best of batches 1, 8
and 32, of 0 and 2 workers, and of both image processors, found by a short trial. All rounds are interleaved, the file
cache is warm; best and median are printed, and the median of the ratios of rounds with its interval (`contest.py`).
"""

import argparse
import json
import os
import platform
import random
import statistics
import subprocess
import sys
import tempfile
import time
from itertools import product
from pathlib import Path

import torch
from contest import paired

import vitrail
from vitrail.data.preprocessing import preset

BACKENDS = {
    "torchvision": "import peers_shim",  # torchvision does not load beside a CPU build of torch without it
    "Pillow": "import sys; sys.modules['torchvision'] = None",
}
FIRST = """
import sys
{backend}
from transformers import pipeline
answer = pipeline("image-classification", model=sys.argv[1])(sys.argv[2])
print(sys.argv[2], *(f"{{one['label']}} {{one['score']:.7g}}" for one in answer), sep="\\t", flush=True)
"""
FOLDER = """
import json, sys, time
{backend}
from transformers import pipeline
classify = pipeline("image-classification", model=sys.argv[1])
paths = json.load(open(sys.argv[2]))
batch, workers = map(int, sys.argv[3:5])
list(classify(paths[:8], batch_size=batch, num_workers=workers))
began = time.perf_counter()
answers = list(classify(paths, batch_size=batch, num_workers=workers))
print(len(answers) / (time.perf_counter() - began), flush=True)
"""
OURS = """
import json, sys, time
from pathlib import Path
from vitrail.base.memory import keep_freed_memory
from vitrail.base.ranks import Ranks
from vitrail.prediction.classifier import Classifier
from vitrail.prediction.folder import list_images
from vitrail.prediction.work import Work
keep_freed_memory()
classifier = Classifier.load(sys.argv[1])
paths = json.load(open(sys.argv[2]))
classifier.predict(paths[:8])
began = time.perf_counter()
work = Work(classifier=classifier, out=Path(sys.argv[3]), top=5, ranks=Ranks())
outcome = work.run(lambda: list_images(paths, sys.stdin.buffer.read))
print((outcome.images - outcome.failed) / (time.perf_counter() - began), flush=True)
"""


def make_models(folder: Path) -> tuple[Path, Path]:
    """Write the same weights for both."""
    model = vitrail.create("S/16", gelu="erf", seed=0)
    torch.nn.init.normal_(model.head.linear.weight, std=0.2, generator=torch.Generator().manual_seed(1))
    labels = [f"class {number}" for number in range(1000)]
    ours, theirs = folder / "model.safetensors", folder / "huggingface"
    vitrail.save(model, ours, labels=labels, preprocessing=preset("huggingface"))
    vitrail.save(vitrail.load(ours), theirs, to="huggingface")
    return ours, theirs


def first_line(command: list[str]) -> tuple[float, str]:
    """Start a process; return the seconds until its first line is there, and the line."""
    began = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        seconds = time.perf_counter() - began
    assert process.returncode == 0, command
    return seconds, line


def interleaved(commands: dict[str, list[str]], rounds: int, *, printed: bool) -> dict[str, list[float]]:
    """Run every command once a round; keep the seconds to the first line, or the number that it printed."""
    times: dict[str, list[float]] = {name: [] for name in commands}
    order = random.Random(0)  # noqa: S311
    for number in range(rounds + 1):
        for name in order.sample(list(commands), len(commands)):
            seconds, line = first_line(commands[name])
            if number:  # the first round warms the file cache
                times[name].append(float(line) if printed else seconds)
    return times


def check_agreement(commands: dict[str, list[str]]) -> None:
    """Refuse to compare programs that answer differently."""
    answers = {
        name: first_line(command)[1].rstrip("\n").replace(" ", "\t").split("\t") for name, command in commands.items()
    }
    ours = answers["Vitrail"]
    for name, theirs in answers.items():
        assert ours[1:3] == theirs[1:3], (ours, theirs)
        print(f"{name:28} {' '.join(theirs[1:4])}")


def best_pipeline(theirs: Path, few: Path) -> dict[str, list[str]]:
    """Find the fastest settings of the pipeline in a short trial."""
    trial = {
        f"Hugging Face, {name}, batch {batch}, {workers} workers": [
            *(sys.executable, "-c", FOLDER.format(backend=backend)),
            *(str(theirs), str(few), str(batch), str(workers)),
        ]
        for (name, backend), batch, workers in product(BACKENDS.items(), (1, 8, 32), (0, 2))
    }
    speeds = {name: float(first_line(command)[1]) for name, command in trial.items()}
    for name, speed in speeds.items():
        print(f"  trial: {name:52} {speed:7.2f} images/s", flush=True)
    fastest = sorted(speeds, key=lambda name: -speeds[name])[:2]
    return {name: trial[name] for name in fastest}


def summary(times: dict[str, list[float]], *, lower: bool) -> dict[str, object]:
    """Sum up rounds: best, median, and our ratio to the best peer."""
    best = {name: (min if lower else max)(values) for name, values in times.items()}
    median = {name: statistics.median(values) for name, values in times.items()}
    peer = (min if lower else max)((name for name in times if name != "Vitrail"), key=median.__getitem__)
    # Seconds and images/s are paired alike: the ratio is that of Vitrail's figure to the peer's.
    ratio = paired(times[peer], times["Vitrail"])
    ratios = {"peer": peer, "ratio": ratio.median, "interval": (ratio.low, ratio.high)}
    for name in times:
        print(f"{name:52} best {best[name]:8.3f}   median {median[name]:8.3f}")
    print(f"Vitrail's figure to that of {peer}: {ratio}", flush=True)
    return {"best": best, "median": median, "all": times, **ratios}


def main() -> None:
    """Measure, print and save."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("photos", type=Path)
    parser.add_argument("--rounds", type=int, default=7, help="of the first answer")
    parser.add_argument("--folder-rounds", type=int, default=3)
    parser.add_argument("--images", type=int, default=256, help="photos of the folder")
    parser.add_argument("--trial", type=int, default=48, help="photos of each trial of the pipeline's settings")
    args = parser.parse_args()
    os.environ |= {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error"}
    paths = sorted(str(path) for path in args.photos.rglob("*.jpg"))[: args.images]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ours, theirs = make_models(folder)
        (folder / "all.json").write_text(json.dumps(paths))
        (folder / "few.json").write_text(json.dumps(paths[: args.trial]))
        commands = {"Vitrail": [sys.executable, "-m", "vitrail", "predict", str(ours), paths[0]]}
        for kind, backend in BACKENDS.items():
            program = FIRST.format(backend=backend)
            commands[f"Hugging Face, {kind}"] = [sys.executable, "-c", program, str(theirs), paths[0]]
        check_agreement(commands)
        print("\nfirst answer, seconds")
        first = summary(interleaved(commands, args.rounds, printed=False), lower=True)
        print(f"\nfolder of {len(paths)} photos, images/s")
        runs = {"Vitrail": [sys.executable, "-c", OURS, str(ours), str(folder / "all.json"), str(folder / "x.csv")]}
        for kind, command in best_pipeline(theirs, folder / "few.json").items():
            runs[kind] = [part if part != str(folder / "few.json") else str(folder / "all.json") for part in command]
        many = summary(interleaved(runs, args.folder_rounds, printed=True), lower=False)
    report = {
        "date": time.strftime("%Y-%m-%d"),
        "command": " ".join(["python", "benchmarks/cold_start.py", "PHOTOS", *sys.argv[2:]]),
        "machine": {"threads": torch.get_num_threads(), "cpu": torch.backends.cpu.get_cpu_capability()},
        "torch": torch.__version__,
        "python": platform.python_version(),
        "model": "S/16, 224 px, erf GELU, 1000 classes, float32",
        "first answer, seconds": first,
        f"folder of {len(paths)} photos, images/s": many,
    }
    path = Path(__file__).parent / "results" / "cold_start.json"
    path.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
