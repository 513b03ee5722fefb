"""Fuzz the parsers written here, led by the lines that an input reaches.

    python benchmarks/campaigns/fuzz.py [--minutes 10] [--seed 0] [--only container]

An input that takes a parser over a step from one line to another that no input took before is kept, and changed
further. An input is refused by one of our errors, or accepted; another exception, more than two seconds of computing
or more than a gigabyte are findings, and are stored as hexadecimal digits. The counts are in `results/fuzz.json`.

The loop is our own, with Python's tracing: the parsers are Python, so that compiled coverage (Atheris) would see no
more of them, and would need a compiler that the project does not.
"""

import argparse
import json
import os
import random
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

os.environ |= {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}

import mutations as m
import torch
from specimens import Specimen, archives, arrays, tables
from stored import checkpoints, runs

from vitrail import VitrailError
from vitrail.base.container import open_container
from vitrail.base.reading import read_json
from vitrail.base.settings import from_dict
from vitrail.checkpoint.archive import open_archive
from vitrail.runs.config import RunConfig

RESULTS = Path(__file__).parents[1] / "results"
OURS = str(Path(__file__).parents[2] / "src" / "vitrail")
SECONDS = 2
ROOM = 1 << 30
Parse = Callable[[Path], Any]
Step = tuple[str, int, int]
"""A file of ours, and two lines that were run one after the other."""


@dataclass(kw_only=True)
class Target:
    """A parser, the name of the file that it reads, and the inputs that reached something new."""

    name: str
    file: str
    parse: Parse
    inputs: list[bytes]
    mutate: m.Mutate
    beside: dict[str, bytes] = field(default_factory=dict)
    steps: set[Step] = field(default_factory=set)
    runs: int = 0
    findings: list[dict[str, str]] = field(default_factory=list)


def target(specimen: Specimen, parse: Parse | None = None) -> Target:
    """Make a target of a specimen; its own reader is taken unless another is given."""
    (file, data), *others = specimen.files.items()
    return Target(
        name=specimen.name,
        file=file,
        parse=parse or specimen.read,
        inputs=[data],
        mutate=m.any_of(specimen.mutate, m.raw),
        beside=dict(others),
    )


def targets() -> list[Target]:
    """The parsers written here."""
    known = {specimen.name: specimen for specimen in (*tables(), *arrays(), *archives(), *checkpoints(), *runs())}
    containers = {
        "own header": lambda at: open_container(at / "x"),
        "timm": lambda at: _all(open_container(at / "x").source),
    }
    found = [target(known[name], parse) for name, parse in containers.items()]
    found.append(target(known["google"], lambda at: _all(open_archive(at / "x"))))
    found.append(target(known["run config.json"], _config))
    plain = (
        "csv",
        "csv quoted",
        "json lines",
        "npz",
        "idx",
        "idx.gz",
        "matlab packed",
        "tar ustar",
        "tar gnu",
        "tar pax",
    )
    return found + [target(known[name]) for name in (*plain, "labels", "class map", "own resigned", "index resigned")]


def _all(source: Any) -> None:
    for name in source:
        source[name]


def _config(folder: Path) -> None:
    from_dict(RunConfig, read_json(folder / "config.json"))


class _SlowError(Exception):
    """An input that takes too long."""


def _ring(*_: Any) -> None:
    raise _SlowError


def trace(parse: Parse, folder: Path) -> tuple[set[Step], BaseException | None]:
    """Run a parser, and return the steps that it took through our code and what it raised."""
    steps: set[Step] = set()
    last: dict[str, int] = {}

    def note(frame: FrameType, event: str, _: Any) -> Any:
        name = frame.f_code.co_filename
        if not name.startswith(OURS):
            return None
        steps.add((name, last.get(name, 0), frame.f_lineno))
        last[name] = frame.f_lineno
        return note if event != "return" else None

    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    sys.settrace(note)
    try:
        parse(folder)
    except BaseException as error:
        return steps, error
    finally:
        sys.settrace(None)
        signal.setitimer(signal.ITIMER_PROF, 0)
    return steps, None


def fuzz(one: Target, folder: Path, chance: random.Random, seconds: float) -> None:
    """Change inputs for some time, and keep those that reach something new."""
    for name, data in one.beside.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    path = folder / one.file
    path.parent.mkdir(parents=True, exist_ok=True)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        # the newest reach the furthest; the first are whole
        data = chance.choice((one.inputs[-1], chance.choice(one.inputs), one.inputs[0])) if one.runs else one.inputs[0]
        try:
            changed = one.mutate(data, chance) if one.runs else data
        except Exception:  # a mutation that needs a whole file
            changed = m.raw(data, chance)
        if len(changed) > 10**6:
            continue
        path.write_bytes(changed)
        steps, error = trace(one.parse, folder)
        one.runs += 1
        if steps - one.steps:
            one.steps |= steps
            one.inputs.append(changed)
        if error is not None and not isinstance(error, VitrailError):
            said = f"{type(error).__name__}: {str(error)[:200]}"
            if said not in {finding["said"] for finding in one.findings}:
                one.findings.append({"said": said, "input": changed[:2000].hex()})
                print(one.name, said, flush=True)


def main() -> int:
    """Fuzz every parser in turn, print and save the counts; 0 when nothing was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10.0, help="time for all parsers together")
    parser.add_argument("--seed", type=int, default=0, help="of the changes")
    parser.add_argument("--only", help="parsers whose names begin so")
    parser.add_argument("--results", type=Path, default=RESULTS, help="the folder of the results")
    args = parser.parse_args()
    torch.set_num_threads(1)
    signal.signal(signal.SIGPROF, _ring)
    chosen = [one for one in targets() if one.name.startswith(args.only or "")]
    mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (mapped + ROOM, mapped + ROOM))
    for one in chosen:
        with tempfile.TemporaryDirectory() as folder:
            chance = random.Random(f"{args.seed} {one.name}")  # noqa: S311
            fuzz(one, Path(folder), chance, 60 * args.minutes / len(chosen))
    counts = {
        "date": time.strftime("%Y-%m-%d"),
        "command": " ".join(sys.argv),
        "seed": args.seed,
        "inputs": sum(one.runs for one in chosen),
        "findings": sum(len(one.findings) for one in chosen),
        "parsers": {one.name: {"inputs": one.runs, "kept": len(one.inputs), "steps": len(one.steps)} for one in chosen},
        "found": {one.name: one.findings for one in chosen if one.findings},
    }
    (args.results / "fuzz.json").write_text(json.dumps(counts, indent=1) + "\n")
    print(json.dumps({name: value for name, value in counts.items() if name != "found"}, indent=1))
    return int(bool(counts["findings"]))


if __name__ == "__main__":
    sys.exit(main())
