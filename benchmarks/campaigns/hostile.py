"""Give every reader files that were changed so that their structure stays, and see what comes of each.

    python benchmarks/campaigns/hostile.py [--inputs 10000] [--minutes 25] [--seed 0] [--only png,tiff]

Every kind of file that is read (`specimens.py`) is changed in ways that its format lets through (`mutations.py`) and
read in a forked child that may take so much memory and time. An input is refused in a sentence, or accepted; anything
else is counted as bad: a signal that ends the child (a crash), more than the seconds (a hang), another exception than
ours (foreign), more memory than allowed, a file that was accepted although its digest cannot be right or whose contents
contradict each other (wrong). Input number N of a kind is the same in every call with the same seed. Batches that ended
well are lines of `results/hostile.trials.jsonl`, and are not done again; the counts are in `results/hostile.json`.
"""

import argparse
import contextlib
import itertools
import json
import os
import random
import resource
import select
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ |= {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}

import torch
from exported import exported
from pretrained import pretrained
from published_lists import published
from released import released
from specimens import Specimen, archives, arrays, images, tables
from stored import stored

from vitrail import VitrailError
from vitrail.base.lines import append_row, read_rows

RESULTS = Path(__file__).parents[1] / "results"
SECONDS = 10.0
"""Of computing that one input may take."""
WAITING = 60.0
"""Seconds by the clock that it may take, on a machine with other work."""
ROOM = 4 << 30
"""Bytes that a child may map beyond what its parent has."""
MOST_MEMORY = 2 << 10
"""MiB that reading one input may add."""
BATCH, SLOW_BATCH = 50, 5
"""Inputs of a kind in its turn."""
BAD = ("crash", "hang", "foreign", "memory", "wrong")


def every_kind() -> list[Specimen]:
    """Return a specimen of everything that is read."""
    return [
        *images(),
        *tables(),
        *arrays(),
        *archives(),
        *published(),
        *stored(),
        *pretrained(),
        *released(),
        *exported(),
    ]


def lay_out(specimen: Specimen, folder: Path, chance: random.Random) -> bool:
    """Write the files of a specimen, the first one changed; return whether it did change."""
    shutil.rmtree(folder, ignore_errors=True)
    first = next(iter(specimen.files))
    for name, data in specimen.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(specimen.mutate(data, chance) if name == first else data)
    return (folder / first).read_bytes() != specimen.files[first]


def attempt(specimen: Specimen, number: int, seed: int, folder: Path) -> dict[str, Any]:
    """Read one input in this process, and return what came of it."""
    chance = random.Random(f"{seed} {specimen.name} {number}")  # noqa: S311
    changed = lay_out(specimen, folder, chance)
    reset_peak()
    before = time.process_time()
    row: dict[str, Any] = {}
    try:
        problem = specimen.read(folder)
        wrong = problem or ("a file whose digest cannot be right" if specimen.signed and changed else "")
        row = {"outcome": "wrong", "said": wrong} if wrong else {"outcome": "accepted"}
    except VitrailError as error:
        row = {"outcome": "refused", "letters": len(str(error))}
    except BaseException as error:  # whatever it is, it should have been one of ours
        places = traceback.extract_tb(error.__traceback__)[-3:]
        where = " < ".join(f"{Path(place.filename).name}:{place.lineno}" for place in reversed(places))
        row = {"outcome": "foreign", "said": f"{type(error).__name__}: {str(error)[:200]} at {where}"}
    row |= {"seconds": round(time.process_time() - before, 3), "memory": peak()}
    if row["memory"] > MOST_MEMORY and row["outcome"] not in BAD:
        row |= {"outcome": "memory"}
    return row


def reset_peak() -> None:
    """Let the system forget how much memory this process once had."""
    Path("/proc/self/clear_refs").write_text("5")
    global _floor
    _floor = _memory("VmRSS")


def peak() -> int:
    """Return the MiB that were added since then, at most."""
    return max(_memory("VmHWM") - _floor, 0) >> 10


_floor = 0


def _memory(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name))


def child(specimen: Specimen, numbers: range, seed: int, folder: Path, pipe: int) -> None:
    """Read inputs one after the other, and write a line about each."""
    mapped = _memory("VmSize") << 10
    resource.setrlimit(resource.RLIMIT_AS, (mapped + ROOM, mapped + ROOM))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    warnings.simplefilter("ignore")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)  # libtiff complains there by itself
    for number in numbers:
        row = {"number": number} | attempt(specimen, number, seed, folder)
        os.write(pipe, json.dumps(row).encode() + b"\n")


def batch(specimen: Specimen, numbers: range, seed: int, folder: Path) -> Iterator[dict[str, Any]]:
    """Read some inputs in children, a new one after each that dies or hangs."""
    while numbers:
        reading, writing = os.pipe()
        process = os.fork()
        if not process:
            code = 1
            with contextlib.suppress(BaseException):
                child(specimen, numbers, seed, folder, writing)
                code = 0
            os._exit(code)
        os.close(writing)
        rows = list(_rows(reading, process))
        os.close(reading)
        _, status = os.waitpid(process, 0)
        yield from rows
        numbers = numbers[len(rows) :]
        if numbers and not (os.WIFEXITED(status) and os.WEXITSTATUS(status) == 0):
            killed = os.WIFSIGNALED(status) and os.WTERMSIG(status)
            outcome = "hang" if killed == signal.SIGKILL else "crash"
            said = signal.Signals(killed).name if killed else f"exit code {os.waitstatus_to_exitcode(status)}"
            yield {"number": numbers[0], "outcome": outcome, "said": said, "seconds": 0.0, "memory": 0}
            numbers = numbers[1:]


def _rows(pipe: int, process: int) -> Iterator[dict[str, Any]]:
    """Read the lines of a child as they come; one that is silent for too long is killed."""
    rest = b""
    since, computed = time.monotonic(), 0.0
    while True:
        if not select.select([pipe], [], [], 0.5)[0]:
            if _computing(process) - computed > SECONDS or time.monotonic() - since > WAITING:
                os.kill(process, signal.SIGKILL)
                return
            continue
        data = os.read(pipe, 1 << 16)
        if not data:
            return
        *whole, rest = (rest + data).split(b"\n")
        yield from map(json.loads, whole)
        since, computed = time.monotonic(), _computing(process)


def _computing(process: int) -> float:
    """Return the seconds that a process has computed."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def latest(lines: Path) -> list[dict[str, Any]]:
    """Return what came of each batch when it was last done: a bad one is done again by the next call."""
    return list({row["trial"]: row for row in read_rows(lines)}.values())


def summarise(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Count outcomes, and keep the worst."""
    outcomes: Counter[str] = Counter()
    kinds: dict[str, Counter[str]] = {}
    for row in rows:
        outcomes.update(row["outcomes"])
        kinds.setdefault(row["kind"], Counter()).update(row["outcomes"])
    return {
        "inputs": outcomes.total(),
        **{name: outcomes[name] for name in ("accepted", "refused", *BAD)},
        "peak memory in MiB": max((row["memory"] for row in rows), default=0),
        "longest seconds": max((row["seconds"] for row in rows), default=0.0),
        "longest sentence": max((row["letters"] for row in rows), default=0),
        "kinds": {name: dict(counts) for name, counts in kinds.items()},
    }


def describe(specimen: Specimen, start: int, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Make one line of a batch: counts, the worst figures, and everything bad."""
    return {
        "trial": f"{specimen.name} {start}",
        "kind": specimen.name,
        "outcomes": dict(Counter(row["outcome"] for row in rows)),
        "memory": max(row["memory"] for row in rows),
        "seconds": max(row["seconds"] for row in rows),
        "letters": max(row.get("letters", 0) for row in rows),
        "bad": [row for row in rows if row["outcome"] in BAD],
    }


def main() -> int:
    """Read the inputs that are left, print and save the counts; 0 when none was bad."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=int, default=10_000, help="inputs in all, those of earlier calls included")
    parser.add_argument("--minutes", type=float, default=25.0, help="the longest that this call may take")
    parser.add_argument("--seed", type=int, default=0, help="of the changes")
    parser.add_argument("--only", default="", help="kinds whose names begin so, with commas")
    parser.add_argument("--results", type=Path, default=RESULTS, help="the folder of the results")
    args = parser.parse_args()
    torch.set_num_threads(1)
    limit, lines = time.monotonic() + 60 * args.minutes, args.results / "hostile.trials.jsonl"
    kinds = [specimen for specimen in every_kind() if specimen.name.startswith(tuple(args.only.split(",")))]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "here"
        rows = latest(lines)
        tried = {row["kind"] for row in rows}
        for specimen in kinds:  # in a child each: not every runtime outlives a fork
            if specimen.name in tried:
                continue
            whole = Specimen(**vars(specimen) | {"mutate": lambda data, _: data})
            (row,) = batch(whole, range(1), args.seed, folder)
            assert row["outcome"] == "accepted", (specimen.name, row)
        known = {row["trial"] for row in rows if not row["bad"]}
        count = sum(sum(row["outcomes"].values()) for row in rows if row["trial"] in known)
        places = {specimen.name: specimen for specimen in kinds}
        again = [(row["kind"], int(row["trial"].rpartition(" ")[2])) for row in rows if row["trial"] not in known]
        turns = ((specimen.name, start) for start in itertools.count(0, BATCH) for specimen in kinds)
        for kind, start in itertools.chain(again, turns):
            if (count >= args.inputs and (kind, start) not in again) or time.monotonic() > limit:
                break
            if f"{kind} {start}" in known or kind not in places:
                continue
            numbers = range(start, start + (SLOW_BATCH if places[kind].slow else BATCH))
            row = describe(places[kind], start, list(batch(places[kind], numbers, args.seed, folder)))
            append_row(lines, row)
            known.add(row["trial"])
            count += len(numbers)
            for bad in row["bad"]:
                print(kind, json.dumps(bad), flush=True)
    counts = {"date": time.strftime("%Y-%m-%d"), "command": " ".join(sys.argv), "seed": args.seed}
    counts |= summarise(latest(lines))
    (args.results / "hostile.json").write_text(json.dumps(counts, indent=1) + "\n")
    print(json.dumps(counts, indent=1))
    return int(any(counts[name] for name in BAD))


if __name__ == "__main__":
    sys.exit(main())
