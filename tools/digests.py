"""Digest what the program computes, to prove that a change of its code changes no bit.

    python tools/digests.py before.json           # at the commit before the change
    python tools/digests.py after.json before.json  # after it: compares, and exits 1 where a digest differs

Bits depend on the processor and the number of threads, so both runs belong on one machine. It takes some minutes. Only
the command line is used, which outlives most changes of the code behind it.
"""

import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from PIL import Image

from vitrail.base.container import open_container

EVERYTHING = [
    *("--averaging", "0.99", "--mixup", "0.2", "--dropout", "0.1", "--micro-batch", "16", "--drop-patches", "0.25"),
    *("--set", 'stages=[{"until":0.5,"image_size":[16,16]}]'),
]
RUNS = ("plain", "everything", "resumed", "tuned", "ddp", "fsdp", "mae", "dino")


def vitrail(folder: Path, *words: str, ranks: int = 1) -> str:
    """Run a command in a folder and return what it printed."""
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"]
    program = [*launcher, "-m", "vitrail"] if ranks > 1 else [sys.executable, "-m", "vitrail"]
    threads = {"OMP_NUM_THREADS": "1"} if ranks > 1 else {}
    process = subprocess.run(
        [*program, *words], cwd=folder, env=os.environ | threads, capture_output=True, text=True, check=False
    )
    if process.returncode:
        raise SystemExit(f"vitrail {' '.join(words)} failed:\n{process.stderr[-2000:]}")
    return process.stdout


def weights(path: Path) -> str:
    """Digest the tensors of a file by name; what else the file says may change."""
    container, digest = open_container(path), hashlib.sha256()
    for name in sorted(container.places):
        digest.update(name.encode())
        digest.update(container.tensor(name).contiguous().numpy().tobytes())
    return digest.hexdigest()[:16]


def run_of(folder: Path) -> dict[str, str]:
    """Digest a finished run."""
    metrics = hashlib.sha256((folder / "metrics.jsonl").read_bytes()).hexdigest()[:16]
    return {"weights": weights(folder / "model.safetensors"), "metrics": metrics}


def stopped_and_resumed(folder: Path) -> None:
    """Train, stop at the first checkpoint, and resume."""
    words = ["train", "sample", "--steps", "60", "--checkpoint-every", "10", "--out", "resumed", *EVERYTHING]
    process = subprocess.Popen([sys.executable, "-m", "vitrail", *words], cwd=folder, stderr=subprocess.DEVNULL)
    while process.poll() is None and not list((folder / "resumed").glob("checkpoints/step-*.safetensors")):
        time.sleep(0.02)
    process.send_signal(signal.SIGTERM)
    process.wait()
    vitrail(folder, "train", "--resume", "resumed")


def pictures(folder: Path) -> None:
    """Write some images of noise."""
    (folder / "images").mkdir()
    generator = np.random.default_rng(0)
    for number in range(6):
        Image.fromarray(generator.integers(0, 256, (40 + number, 50), np.uint8)).save(folder / f"images/{number}.png")


def digests(folder: Path) -> dict[str, object]:
    """Run everything, and digest what came out."""
    vitrail(folder, "train", "sample", "--steps", "200", "--out", "plain")
    vitrail(folder, "train", "sample", "--steps", "60", "--out", "everything", *EVERYTHING)
    stopped_and_resumed(folder)
    tuned = ("finetune", "sample", "--from", "plain/model.safetensors", "--steps", "20", "--rates", "0.01", "0.03")
    vitrail(folder, *tuned, "--out", "tuned")
    adam = ("--steps", "20", "--optimizer", "adam", "--learning-rate", "0.001")
    vitrail(folder, "train", "sample", *adam, "--out", "ddp", ranks=2)
    vitrail(folder, "train", "sample", *adam, "--shard", "--out", "fsdp", ranks=2)
    vitrail(folder, "pretrain", "sample", "--objective", "mae", "--steps", "20", "--out", "mae")
    vitrail(folder, "pretrain", "sample", "--objective", "dino", "--steps", "4", "--batch", "32", "--out", "dino")
    pictures(folder)
    model = "plain/model.safetensors"
    vitrail(folder, "evaluate", model, "sample", "--csv", "answers.csv")
    vitrail(folder, "predict", model, "images", "--out", "predictions.csv")
    shots = json.loads(vitrail(folder, "fewshot", model, "sample", "--shots", "1", "5", "--no-cache", "--json"))
    return {
        **{name: run_of(folder / name) for name in RUNS},
        "sweep": weights(folder / "tuned/sweep/rate-0.03/model.safetensors"),
        "evaluate": hashlib.sha256((folder / "answers.csv").read_bytes()).hexdigest()[:16],
        "predict": hashlib.sha256((folder / "predictions.csv").read_bytes()).hexdigest()[:16],
        "fewshot": [row["accuracies"] for row in shots["results"]],
    }


def main() -> None:
    """Write the digests, and compare them with earlier ones if there are any."""
    with tempfile.TemporaryDirectory() as folder:
        now = digests(Path(folder))
    Path(sys.argv[1]).write_text(json.dumps(now, indent=1) + "\n")
    if len(sys.argv) > 2:
        before = json.loads(Path(sys.argv[2]).read_text())
        other = [name for name in before if before[name] != now.get(name)]
        print("\n".join(f"{name}: {before[name]} before, {now.get(name)} now" for name in other) or "the same bits")
        sys.exit(1 if other else 0)


if __name__ == "__main__":
    main()
