"""Fuzz the parsers written here, led by the lines that an input reaches.

    python benchmarks/campaigns/fuzz.py [--seconds 60] [--inputs 20000] [--minutes 10] [--seed 0] [--only csv]

An input that takes a parser over a step from one line to another that no input took before is kept, and changed
further. An input is refused by one of our errors, or accepted; another exception, a signal, more than two seconds of
computing (without the tracing) or more than a gigabyte are findings. Each parser (`parsers.py`) works in a forked child
until it has had its seconds or its inputs; a child that dies or hangs is a finding, and the next one goes on. What was
kept and what was counted lies in `results/fuzz.place`, so that a later call goes on where this one ended, and gives
findings to a parser once more first; the counts are in `results/fuzz.json`.

The loop is our own, with Python's tracing: the parsers are Python, so that Atheris would see no more of them, and what
it adds, comparisons with constants, our changes know from the formats.
"""

import argparse
import json
import os
import random
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path
from types import CodeType, FrameType, ModuleType
from typing import Any

os.environ |= {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}

import mutations as m
import torch
from faults import import_everything
from parsers import Parse, Parser, parsers

from vitrail import VitrailError
from vitrail.base.files import hold, write_whole

RESULTS = Path(__file__).parents[1] / "results"
OURS = str(Path(__file__).parents[2] / "src" / "vitrail")
SECONDS = 2.0
"""Of computing that one input may take."""
TRACED = 20.0
"""Of computing that it may take with tracing."""
SILENT = 90.0
"""Seconds without a further input after which a child counts as hanging."""
ROOM = 1 << 30
"""Bytes that a child may map beyond what its parent has."""
LARGEST = 10**6
"""Bytes of an input."""
KEPT = 2**14
"""Bytes of an input that is kept; what is larger is slow to change, unless the first one is."""
SAVED = 5.0
"""Seconds between two times that counts are saved."""
Step = tuple[str, int, int]
"""A file of ours, and two lines that were run one after the other."""


@dataclass(kw_only=True)
class Counts:
    """What came of a parser's inputs, as it is stored."""

    inputs: int = 0
    accepted: int = 0
    refused: int = 0
    seconds: float = 0.0
    """By the clock."""
    findings: list[dict[str, str]] = field(default_factory=list)


class _SlowError(BaseException):
    """An input that takes too long."""


def _ring(*_: Any) -> None:
    raise _SlowError


def lines_of(module: ModuleType) -> set[tuple[str, int]]:
    """Return the lines of a module that its functions run, without what is run when it is imported."""
    path = str(module.__file__)
    codes = [compile(Path(path).read_text(), path, "exec")]
    lines = set()
    for code in codes:
        codes += [inner for inner in code.co_consts if isinstance(inner, CodeType)]
        if code.co_flags & 0x02:  # a function, which has locals of its own
            lines |= {(path, line) for *_, line in code.co_lines() if line not in (None, code.co_firstlineno)}
    return lines


class Tracer:
    """The steps through our code that inputs took."""

    def __init__(self) -> None:
        self.steps: set[Step] = set()
        self.last: dict[str, int] = {}

    def __call__(self, frame: FrameType, _event: str, _argument: Any) -> Any:
        name = frame.f_code.co_filename
        if not name.startswith(OURS):
            return None
        line = frame.f_lineno
        self.steps.add((name, self.last.get(name, 0), line))
        self.last[name] = line
        return self

    def run(self, parse: Parse, folder: Path, seconds: float) -> BaseException | None:
        """Run a parser, and return what it raised."""
        self.last = {}
        signal.setitimer(signal.ITIMER_PROF, seconds)
        sys.settrace(self if seconds == TRACED else None)
        try:
            parse(folder)
        except BaseException as error:
            return error
        finally:
            sys.settrace(None)
            signal.setitimer(signal.ITIMER_PROF, 0)
        return None


class Fuzz:
    """One parser's turn, in a child of its own."""

    def __init__(self, parser: Parser, place: Path, folder: Path) -> None:
        self.parser, self.place, self.folder = parser, place, folder
        self.counts, self.tracer = read_counts(place), Tracer()
        self.inputs = [parser.data]
        self.path = folder / parser.file

    def lay_out(self) -> None:
        """Write what lies beside the input."""
        for name, data in self.parser.beside.items():
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / name).write_bytes(data)
        self.path.parent.mkdir(parents=True, exist_ok=True)

    def take(self, data: bytes) -> bool:
        """Give the parser an input; return whether it took a new step."""
        self.path.write_bytes(data)
        known = len(self.tracer.steps)
        error = self.tracer.run(self.parser.parse, self.folder, TRACED)
        if isinstance(error, _SlowError):  # of the tracing, or of the parser
            error = self.tracer.run(self.parser.parse, self.folder, SECONDS)
        self.counts.inputs += 1
        self.counts.accepted += error is None
        self.counts.refused += isinstance(error, VitrailError)
        if error is not None and not isinstance(error, VitrailError):
            note_finding(self.counts, f"{type(error).__name__}: {str(error)[:200]}", data)
            save_counts(self.place, self.counts)
        return len(self.tracer.steps) > known

    def replay(self) -> None:
        """Give the parser a whole file, what was found before, and what was kept."""
        assert (error := self.tracer.run(self.parser.parse, self.folder, TRACED)) is None, (
            f"{self.parser.name}: {error}"
        )
        old, self.counts.findings = self.counts.findings, []
        for finding in old:
            self.take(bytes.fromhex(finding["input"]))
        for file in sorted(self.place.glob("*.input")):
            data = file.read_bytes()
            self.path.write_bytes(data)
            self.tracer.run(self.parser.parse, self.folder, TRACED)
            self.inputs.append(data)

    def run(self, chance: random.Random, seconds: float, inputs: int) -> None:
        """Change inputs for some time, and keep those that reach something new."""
        self.lay_out()
        self.path.write_bytes(self.parser.data)
        self.replay()
        saved, largest = time.monotonic(), max(2 * len(self.parser.data), KEPT)
        while self.counts.seconds < seconds and self.counts.inputs < inputs:
            # the newest reach the furthest; the first is whole
            data = chance.choice((self.inputs[-1], chance.choice(self.inputs), self.inputs[0]))
            try:
                changed = self.parser.mutate(data, chance)
            except Exception:  # a change that needs a whole file
                changed = m.raw(data, chance)
            if len(changed) <= LARGEST and self.take(changed) and len(changed) <= largest:
                self.inputs.append(changed)
                (self.place / f"{len(self.inputs):06}-{sha256(changed).hexdigest()[:12]}.input").write_bytes(changed)
            if time.monotonic() - saved > SAVED:
                self.counts.seconds += time.monotonic() - saved
                saved = time.monotonic()
                save_counts(self.place, self.counts)
        self.counts.seconds += time.monotonic() - saved
        save_counts(self.place, self.counts)
        reached = {(name, line) for name, _, line in self.tracer.steps}
        own = set[tuple[str, int]]().union(*map(lines_of, self.parser.modules))
        coverage = {"steps": len(self.tracer.steps), "lines": len(own & reached), "of": len(own)}
        missed = sorted(f"{Path(name).name}:{line}" for name, line in own - reached)
        write_whole(self.place / "coverage.json", json.dumps(coverage | {"missed": missed}).encode())


def note_finding(counts: Counts, said: str, data: bytes) -> None:
    """Keep a finding, unless one is known that differs in numbers only."""
    if re.sub(r"\d+", "0", said) not in {re.sub(r"\d+", "0", finding["said"]) for finding in counts.findings}:
        counts.findings.append({"said": said, "input": data.hex()})


def read_counts(place: Path) -> Counts:
    return Counts(**json.loads((place / "counts.json").read_text())) if (place / "counts.json").is_file() else Counts()


def save_counts(place: Path, counts: Counts) -> None:
    write_whole(place / "counts.json", json.dumps(asdict(counts)).encode())


def watch(parser: Parser, place: Path, seed: int, seconds: float, inputs: int, limit: float) -> None:
    """Fuzz a parser in children, a new one after each that dies or hangs."""
    while time.monotonic() < limit:
        counts = read_counts(place)
        if counts.seconds >= seconds or counts.inputs >= inputs:
            return
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            process = os.fork()
            if not process:
                _child(parser, place, folder, f"{seed} {parser.name} {counts.inputs}", seconds, inputs)
            status = _wait(process, folder / parser.file, limit)
            if status is None:
                return
            if status:
                counts = read_counts(place)
                data = (folder / parser.file).read_bytes() if (folder / parser.file).is_file() else b""
                note_finding(counts, f"ends with {status}", data)
                counts.inputs += 1
                save_counts(place, counts)
                return


def _child(parser: Parser, place: Path, folder: Path, seed: str, seconds: float, inputs: int) -> None:
    code = 70
    try:
        mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (mapped + ROOM, mapped + ROOM))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        signal.signal(signal.SIGPROF, _ring)
        Fuzz(parser, place, folder).run(random.Random(seed), seconds, inputs)  # noqa: S311
        code = 0
    except BaseException as error:
        print(f"{parser.name}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
    finally:
        os._exit(code)


def _wait(process: int, path: Path, limit: float) -> int | None:
    """Wait for a child and return its exit code, below 0 for a signal; None for one that had no more time."""
    since, changed = time.monotonic(), 0
    while True:
        ended, status = os.waitpid(process, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        now = path.stat().st_mtime_ns if path.is_file() else 0
        since, changed = (time.monotonic(), now) if now != changed else (since, changed)
        if time.monotonic() > limit or time.monotonic() - since > SILENT:
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
            return None if time.monotonic() > limit else -int(signal.SIGALRM)
        time.sleep(0.05)


def summarise(places: dict[str, Path]) -> dict[str, Any]:
    """Add up the counts of all parsers."""
    rows: dict[str, dict[str, Any]] = {}
    found: dict[str, list[dict[str, str]]] = {}
    for name, place in places.items():
        counts = asdict(read_counts(place))
        if counts["findings"]:
            found[name] = [finding | {"input": finding["input"][:4000]} for finding in counts["findings"]]
        coverage = json.loads((place / "coverage.json").read_text()) if (place / "coverage.json").is_file() else {}
        coverage.pop("missed", None)
        kept = {"kept": len(list(place.glob("*.input")))}
        rows[name] = (
            counts | {"seconds": round(counts["seconds"]), "findings": len(counts["findings"])} | kept | coverage
        )
    totals = {name: sum(row[name] for row in rows.values()) for name in ("inputs", "accepted", "refused", "findings")}
    return totals | {"parsers": rows, "found": found}


def main() -> int:
    """Fuzz every parser in turn, print and save the counts; 0 when nothing was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0, help="for each parser, earlier calls included")
    parser.add_argument("--inputs", type=int, default=10**9, help="for each parser, earlier calls included")
    parser.add_argument("--minutes", type=float, default=60.0, help="the longest that this call may take")
    parser.add_argument("--seed", type=int, default=0, help="of the changes")
    parser.add_argument("--only", help="parsers whose names begin so")
    parser.add_argument("--new", action="store_true", help="forget what earlier calls did")
    parser.add_argument("--results", type=Path, default=RESULTS, help="the folder of the results")
    args = parser.parse_args()
    limit = time.monotonic() + 60 * args.minutes
    torch.set_num_threads(1)
    import_everything()
    home = args.results / "fuzz.place"
    with hold(args.results / "fuzz.lock"):
        if args.new:
            shutil.rmtree(home, ignore_errors=True)
        known = parsers()
        places = {one.name: home / one.name.replace(" ", "-") for one in known}
        for place in places.values():
            place.mkdir(parents=True, exist_ok=True)
        for one in known:
            if one.name.startswith(args.only or ""):
                watch(one, places[one.name], args.seed, args.seconds, args.inputs, limit)
    counts = {"date": time.strftime("%Y-%m-%d"), "command": " ".join(sys.argv), "seed": args.seed} | summarise(places)
    (args.results / "fuzz.json").write_text(json.dumps(counts, indent=1) + "\n")
    print(json.dumps(counts, indent=1))
    return int(bool(counts["findings"]))


if __name__ == "__main__":
    sys.exit(main())
