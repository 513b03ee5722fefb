"""Kill training at random moments, also in the middle of saving, and see whether the result is the same.

    python benchmarks/kill.py [--kills 30] [--rank-kills 10]

One run goes undisturbed. Others with the same settings are killed (SIGKILL) after a random time, over and over, and
started again by the same command, until all kills are spent; then they may finish. Under torchrun a random rank is
killed, and torchrun starts all ranks again. A checkpoint is written after every step, so that many kills fall into
writing. In the end, weights and metrics are compared bit by bit with the undisturbed run's.
"""

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch

from vitrail.base.container import open_container

SETTINGS = [
    *("--steps", "40", "--batch", "16", "--checkpoint-every", "1", "--evaluate-every", "20", "--threads", "1"),
    *("--averaging", "0.9", "--mixup", "0.2", "--dropout", "0.1", "--fraction", "0.05", "--device", "cpu"),
]
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]


def command(out: Path, *, ranks: bool) -> list[str]:
    """Return the command of a run."""
    launch = [*TORCHRUN, "--max-restarts", "1000"] if ranks else [sys.executable]
    return [*launch, "-m", "vitrail", "train", "sample", *SETTINGS, "--out", str(out)]


def start(out: Path, *, ranks: bool) -> subprocess.Popen[bytes]:
    """Start a run in a process group of its own."""
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    return subprocess.Popen(command(out, ranks=ranks), start_new_session=True, env=environment, **quiet)


def undisturbed(out: Path, *, ranks: bool) -> float:
    """Run to the end, and return the seconds that it took."""
    before = time.perf_counter()
    assert start(out, ranks=ranks).wait() == 0, "the undisturbed run failed"
    return time.perf_counter() - before


def kill_processes(out: Path, reference: Path, kills: int, seconds: float, chance: random.Random) -> dict[str, int]:
    """Kill a single process again and again, then let it finish; compare whatever finishes."""
    done = in_writing = finished_early = 0
    while done < kills:
        process = start(out, ranks=False)
        try:
            process.wait(timeout=chance.uniform(0.2, seconds))
            assert process.returncode == 0, "a run that was killed did not finish"
            finished_early += 1
            _clear(out, reference)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            done += 1
            in_writing += any((out / "checkpoints").glob(".*.part"))
    assert start(out, ranks=False).wait() == 0, "a run that was killed did not finish"
    _clear(out, reference)
    return {"kills": done, "while writing": in_writing, "runs that finished, all identical": finished_early + 1}


def kill_ranks(out: Path, reference: Path, kills: int, seconds: float, chance: random.Random) -> dict[str, int]:
    """Kill a random rank again and again under one torchrun, which restarts them all; start anew when it is done."""
    done = finished_early = 0
    process = start(out, ranks=True)
    while done < kills:
        time.sleep(chance.uniform(0.2, seconds))
        victims = _ranks_of(process.pid)
        if process.poll() is not None:
            assert process.returncode == 0, "a run whose rank was killed did not finish"
            finished_early += 1
            _clear(out, reference)
            process = start(out, ranks=True)
        elif victims:
            os.kill(chance.choice(victims), signal.SIGKILL)
            done += 1
    assert process.wait(timeout=600) == 0, "a run whose rank was killed did not finish"
    _clear(out, reference)
    return {"kills": done, "runs that finished, all identical": finished_early + 1}


def _ranks_of(agent: int) -> list[int]:
    """Return the ranks that an agent has started: those of its children that train."""
    children = (
        Path(f"/proc/{agent}/task/{agent}/children").read_text().split() if Path(f"/proc/{agent}").exists() else []
    )
    return [int(child) for child in children if b"train" in Path(f"/proc/{child}/cmdline").read_bytes()]


def _clear(out: Path, reference: Path) -> None:
    """Compare a finished run with the undisturbed one, and throw it away, so that there is something to kill again."""
    found = same(out, reference)
    assert all(found.values()), f"a run that was killed came out different: {found}"
    shutil.rmtree(out)


def same(one: Path, other: Path) -> dict[str, bool]:
    """Compare two finished runs bit by bit."""
    ours, theirs = (open_container(folder / "model.safetensors") for folder in (one, other))
    weights = ours.places.keys() == theirs.places.keys() and all(
        torch.equal(ours.tensor(name), theirs.tensor(name)) for name in ours.places
    )
    metrics = (one / "metrics.jsonl").read_bytes() == (other / "metrics.jsonl").read_bytes()
    return {"weights": weights, "metrics": metrics}


def main() -> None:
    """Kill, compare, print and save."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=30, help="kills of a single process")
    parser.add_argument("--rank-kills", type=int, default=10, help="kills of a random rank under torchrun")
    parser.add_argument("--seed", type=int, default=0, help="of the moments")
    args = parser.parse_args()
    chance = random.Random(args.seed)  # noqa: S311
    results = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for kind, kills, kill in (
            ("one process", args.kills, kill_processes),
            ("two ranks", args.rank_kills, kill_ranks),
        ):
            ranks = kind == "two ranks"
            seconds = undisturbed(folder / f"{kind}-undisturbed", ranks=ranks)
            print(f"{kind}: undisturbed in {seconds:.1f} s", flush=True)
            counts = kill(folder / f"{kind}-killed", folder / f"{kind}-undisturbed", kills, seconds, chance)
            print(f"{kind}: {counts}", flush=True)
            results[kind] = counts
    path = Path(__file__).parent / "results" / "kill.json"
    path.write_text(json.dumps({"date": time.strftime("%Y-%m-%d"), "seed": args.seed} | results, indent=1) + "\n")


if __name__ == "__main__":
    main()
