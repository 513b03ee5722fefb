"""Kill, stop and starve runs at every call of the file system and at random moments, and see what comes of them.

    python benchmarks/campaigns/kill.py [--trials 200] [--minutes 30] [--seed 0] [--only train/1]

Each trial: a command gets one fault (SIGKILL, SIGTERM, SIGHUP, SIGSTOP and SIGCONT, a disk that is full, may only be
read, or has a quota), the same command runs again without one, and what it wrote is compared bit by bit with what an
undisturbed one wrote: weights and metrics of training, of pre-training and of every run of fine-tuning and of a study,
the table of predictions, the file of a download. The commands are train, finetune, pretrain and predict, in one
process and on two ranks, study, and pull, from a server on this machine. Trials that are done are lines of
`results/kill.trials.jsonl`, each with the digest of the code that it was done with, and are not done again, nor are the
undisturbed commands of the same code, which lie in `results/kill.place`; the counts are in `results/kill.json`.
"""

import argparse
import json
import os
import random
import shutil
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cache, partial
from hashlib import sha256
from pathlib import Path
from typing import Any

os.environ |= {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}

import numpy as np
import torch
from commands import KINDS, command, contents, make_data
from faults import DISKS, QUOTA, SIGNALS, Attempt, Fault, attempt, import_everything, import_used
from publisher import publishing

import vitrail as package
from vitrail.base.files import hold
from vitrail.base.lines import append_row, read_rows
from vitrail.cli.main import main as vitrail

RESULTS = Path(__file__).parents[1] / "results"
REQUESTS = "requests.txt"
"""What the server of downloads was asked for."""
MOST_ATTEMPTS = 3
"""Attempts after the fault until a command must be done; one is enough unless ranks find their port taken."""


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One fault in one command."""

    verb: str
    ranks: int
    fault: Fault

    @property
    def name(self) -> str:
        fault = self.fault
        when = f"call {fault.call}" if fault.seconds is None else f"{fault.seconds:.4f} s"
        return f"{self.verb}/{self.ranks} {fault.action} {when} rank {fault.rank}"


@dataclass(frozen=True, kw_only=True)
class Reference:
    """An undisturbed command."""

    contents: dict[str, str]
    """Digests of what must be the same."""
    seconds: float
    calls: int
    largest: int
    """Bytes of its largest file."""


def run(verb: str, ranks: int, place: Path, out: Path, fault: Fault | None = None) -> Attempt:
    out.mkdir(parents=True, exist_ok=True)
    os.environ["VITRAIL_CACHE"] = str(out / "cache")
    return attempt(partial(vitrail, command(verb, place, out)), out, ranks=ranks, fault=fault, cwd=place)


def refer(verb: str, ranks: int, place: Path) -> Reference:
    """Run a command undisturbed."""
    out = place / f"reference-{verb}-{ranks}"
    done = run(verb, ranks, place, out)
    assert not any(done.codes), done.said
    return Reference(
        contents=contents(verb, out),
        seconds=done.seconds,
        calls=done.calls,
        largest=max(path.stat().st_size for path in out.rglob("*") if path.is_file()),
    )


def plan(verb: str, ranks: int, reference: Reference, seed: int) -> Iterator[Trial]:
    """Yield faults without end: every call of the file system with every action in turn, and random moments between."""
    chance = random.Random(f"{seed} {verb} {ranks}")  # noqa: S311
    while True:
        calls = list(range(1, reference.calls + 1))
        chance.shuffle(calls)
        actions = [*SIGNALS, *DISKS]
        for number, call in enumerate(calls):
            yield Trial(verb=verb, ranks=ranks, fault=Fault(action=actions[number % len(actions)], call=call))
            if number % 6 == 5:
                quota = Fault(action=QUOTA, call=chance.randrange(reference.largest))
                yield Trial(verb=verb, ranks=ranks, fault=quota)
            if number % 3 == 0:
                moment = round(chance.uniform(0.0, reference.seconds), 4)
                fault = Fault(action=chance.choice(list(SIGNALS)), seconds=moment, rank=chance.randrange(ranks))
                yield Trial(verb=verb, ranks=ranks, fault=fault)


def carry_out(trial: Trial, reference: Reference, place: Path) -> dict[str, Any]:
    """Do one trial and return what came of it."""
    out = place / "trial"
    shutil.rmtree(out, ignore_errors=True)
    (place / REQUESTS).write_text("")
    first = run(trial.verb, trial.ranks, place, out, trial.fault)
    attempts = [first]
    while any(attempts[-1].codes) and len(attempts) <= MOST_ATTEMPTS:
        attempts.append(run(trial.verb, trial.ranks, place, out))
    done = not any(attempts[-1].codes)
    equal = done and contents(trial.verb, out) == reference.contents
    row = {
        "trial": trial.name,
        "code": source_digest()[:12],
        **{name: value for name, value in asdict(trial).items() if name != "fault"},
        "action": trial.fault.action,
        "met": first.met,
        "codes": first.codes,
        "said": first.said.strip().rpartition("\n")[2][:300],
        "resumed": done,
        "equal": equal,
        "clean": all(each.clean for each in attempts),
        "attempts": len(attempts),
        "lost": round(sum(each.seconds for each in attempts) - reference.seconds, 3),
    }
    if trial.verb == "pull":  # the first bytes that were asked for
        row["requests"] = list(map(int, (place / REQUESTS).read_text().split()))
    if not (equal and row["clean"]):
        row["everything said"] = "\n".join(each.said[-2000:] for each in attempts)
    return row


def summarise(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Count what came of the trials that met their fault, in all and by command and action."""
    met = [row for row in rows if row["met"]]
    groups: dict[str, list[dict[str, Any]]] = {"all": met}
    for row in met:
        groups.setdefault(f"code {row['code']}", []).append(row)
        groups.setdefault(f"{row['verb']}/{row['ranks']}", []).append(row)
        groups.setdefault(row["action"], []).append(row)
    return {
        name: {
            "trials": len(group),
            "resumed": sum(row["resumed"] for row in group),
            "equal": sum(row["equal"] for row in group),
            "clean": sum(row["clean"] for row in group),
            "median seconds lost": round(float(np.median([row["lost"] for row in group])), 2),
            "most seconds lost": max(row["lost"] for row in group),
        }
        for name, group in groups.items()
        if group
    }


def prepare(place: Path, kinds: list[tuple[str, int]]) -> dict[tuple[str, int], Reference]:
    """Write data and a model to start from, and run every command; what the same code has done before is kept."""
    notes, code = place / "references.json", source_digest()
    stored = json.loads(notes.read_text()) if notes.is_file() else {}
    if stored.get("code") != code:
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        make_data(place)
        assert not any(run("train", 1, place, place / "start").codes)
        shutil.copy(place / "start" / "run" / "model.safetensors", place / "start.safetensors")
        stored = {"code": code}
    os.environ["VITRAIL_CACHE"] = str(place / "warm" / "cache")
    for verb in {verb for verb, _ in kinds}:
        shutil.rmtree(place / "warm", ignore_errors=True)
        import_used(partial(vitrail, command(verb, place, place / "warm")), place)
    references = {}
    for verb, ranks in kinds:
        if f"{verb}/{ranks}" not in stored:
            stored[f"{verb}/{ranks}"] = asdict(refer(verb, ranks, place))
            notes.write_text(json.dumps(stored))
        references[verb, ranks] = reference = Reference(**stored[f"{verb}/{ranks}"])
        print(f"{verb} on {ranks}: {reference.seconds:.2f} s, {reference.calls} calls", flush=True)
    return references


@cache
def source_digest() -> str:
    """Digest the package, whose runs are compared."""
    digest = sha256()
    for path in sorted(Path(package.__file__).parent.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=200, help="trials in all, those of earlier calls included")
    parser.add_argument("--minutes", type=float, default=60.0, help="the longest that this call may take")
    parser.add_argument("--seed", type=int, default=0, help="of the order of calls and of the moments")
    parser.add_argument("--only", help="commands and numbers of ranks, such as train/2,study/1")
    parser.add_argument("--results", type=Path, default=RESULTS, help="the folder of the results")
    return parser.parse_args()


def main() -> int:
    """Do the trials that are left, print and save the counts; 0 when all resumed and were equal."""
    args = parse()
    torch.set_num_threads(1)
    import_everything()
    limit = time.monotonic() + 60 * args.minutes
    lines = args.results / "kill.trials.jsonl"
    kinds = [kind for kind in KINDS if args.only is None or f"{kind[0]}/{kind[1]}" in args.only.split(",")]
    place = (args.results / "kill.place").resolve()
    with hold(args.results / "kill.lock"), publishing(place / REQUESTS) as os.environ["PUBLISHED"]:
        references = prepare(place, kinds)
        plans = {kind: plan(*kind, reference, args.seed) for kind, reference in references.items()}
        known = {row["trial"] for row in read_rows(lines) if row["code"] == source_digest()[:12]}
        turn = 0
        while len(known) < args.trials and time.monotonic() < limit:
            kind = kinds[turn % len(kinds)]
            turn += 1
            trial = next(each for each in plans[kind] if each.name not in known)
            row = carry_out(trial, references[kind], place)
            append_row(lines, row)
            known.add(trial.name)
            if not (row["equal"] and row["clean"]):
                print(json.dumps(row, indent=1), flush=True)
    rows = list({(row["trial"], row["code"]): row for row in read_rows(lines)}.values())
    counts = {"date": time.strftime("%Y-%m-%d"), "command": " ".join(sys.argv), "seed": args.seed} | summarise(rows)
    (args.results / "kill.json").write_text(json.dumps(counts, indent=1) + "\n")
    print(json.dumps(counts, indent=1))
    return int(not all(row["resumed"] and row["equal"] and row["clean"] for row in rows if row["met"]))


if __name__ == "__main__":
    sys.exit(main())
