"""Give every verb every one of its flags at its extremes, on a pseudo-terminal and in a pipe, and see how it ends.

    python benchmarks/campaigns/flags.py [--minutes 30] [--more] [--pairs 0] [--patience 1] [--seed 0] [--only train]

The flags, their types and their extremes come from the `Arguments` of the verbs (`extremes.py`). A trial is a command
that works, with one flag set to what nobody should: its extremes in turn on a terminal and in a pipe, with `--more`
each on both, and with `--pairs` two flags at once. It is bad when it shows a traceback or a foreign exception, hangs,
ends with another code than 0, 1, 2 or 130, writes escape codes into a pipe, or changes a file that it reads or,
unforced, one that it did not write. Verbs that are new are tried too, by what their fields look like. Trials that ended
well are lines of `results/flags.trials.jsonl`, and are not done again; those that were interrupted are, by a call with
more patience. The counts, with how many trials there are in all, are in `results/flags.json`.
"""

import argparse
import gc
import hashlib
import itertools
import json
import os
import random
import shutil
import sys
import tempfile
import time
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from stat import S_ISREG
from typing import Any

os.environ |= {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}

import torch
from extremes import ENDLESS, OWNED, command, fields_of, make_place, more_of, values_of
from faults import import_everything, import_used
from terminals import WAITING, Ending, refuse_network, run_all

from vitrail.base.lines import append_row, read_rows
from vitrail.cli.main import VERBS
from vitrail.cli.main import main as vitrail
from vitrail.cli.usage import Field

RESULTS = Path(__file__).parents[1] / "results"
BATCH = 40
"""Trials that one process may do, if they are all refused."""
WORKING_PATIENCE = 10.0
"""For the command of each verb that should work; an export computes for longer than most trials may."""
Trial = tuple[str, list[str], bool]
"""A verb, the words after it, and whether they are on a terminal."""


def single_trials(verbs: Sequence[str], seed: int) -> list[Trial]:
    """List those that set one flag to an extreme, in turn on a terminal and in a pipe, in an order by chance."""
    trials = [
        (verb, _placed(verb, field, words), bool(turn % 2))
        for verb in verbs
        for field in fields_of(verb)
        for turn, words in enumerate(values_of(field))
    ]
    random.Random(seed).shuffle(trials)  # noqa: S311
    return trials


def more_trials(verbs: Sequence[str], seed: int) -> list[Trial]:
    """List the same where the others were, and those that set one flag to another odd value."""
    chance = random.Random(seed)  # noqa: S311
    values = [(verb, field, words) for verb in verbs for field in fields_of(verb) for words in more_of(field)]
    trials = [(verb, words, not terminal) for verb, words, terminal in single_trials(verbs, seed)]
    trials += [(verb, _placed(verb, field, words), bool(chance.getrandbits(1))) for verb, field, words in values]
    chance.shuffle(trials)
    return trials


def pairs(verbs: Sequence[str], seed: int) -> Iterator[Trial]:
    """Yield commands with two flags set, without end."""
    chance = random.Random(f"{seed} pairs")  # noqa: S311
    known = [(verb, field) for verb in verbs for field in fields_of(verb)]
    while True:
        verb, field = chance.choice(known)
        others = [other for owner, other in known if owner == verb and not other.positional and other != field]
        if others:
            words = _placed(verb, field, chance.choice(values_of(field)))
            yield verb, [*chance.choice(values_of(chance.choice(others))), *words], bool(chance.getrandbits(1))


def _placed(verb: str, field: Field, words: Sequence[str]) -> list[str]:
    """Put a value into the command of a verb: at its place, or as a further flag."""
    working = command(verb)
    if not field.positional:
        return [*working, *words]
    names = [each.dest for each in fields_of(verb) if each.positional]
    end = next((at for at, word in enumerate(working) if word.startswith("--")), len(working))
    places, rest = working[:end], working[end:]
    at = names.index(field.dest)
    places[at : at + 1] = [words[-1]]
    return [*rest, "--", *places]


def state(folder: Path) -> dict[str, tuple[int, ...]]:
    """Return what the system knows of everything below a folder: what is written anew differs."""
    paths = (path for path in folder.rglob("*") if path.parent != folder or not path.name.startswith(".std"))
    return {str(path): _facts(path.lstat()) for path in paths}


def _facts(stat: os.stat_result) -> tuple[int, ...]:
    is_file = S_ISREG(stat.st_mode)
    return (stat.st_mode, stat.st_ino, *((stat.st_size, stat.st_mtime_ns) if is_file else ()))


def problems_of(words: Sequence[str], ending: Ending, changed: dict[str, bool], *, terminal: bool) -> list[str]:
    """Name everything that a user should never meet."""
    said = ending.out + ending.err
    problems = []
    if ending.hung:
        problems.append("hangs")
    elif ending.code not in (0, 1, 2, 130):
        problems.append(f"code {ending.code}")
    if "Traceback" in said:
        problems.append("traceback")
    if "run with --debug" in said:
        problems.append("foreign exception")
    if OWNED in said or (not terminal and "\x1b" in said):
        problems.append("escape codes")
    if ending.code in (1, 2) and "vitrail: " not in said and words[0] not in ("diff", "verify", "predict"):
        problems.append("no sentence")
    if len(said) > 200_000:
        problems.append("endless output")
    if ending.code == 0 and "--json" in words and not terminal and not _is_json(ending.out):
        problems.append("not JSON")
    return problems + [name for name, bad in changed.items() if bad]


def _is_json(text: str) -> bool:
    try:
        json.loads(text, parse_constant=lambda _: 1 / 0)
    except (ValueError, ZeroDivisionError):
        return False
    return True


def offline(words: list[str]) -> int:
    """Run a command without a network."""
    sys.addaudithook(refuse_network)
    return vitrail(words)


def carry_out(trials: Sequence[Trial], place: Path, patience: float = 1.0) -> Iterator[dict[str, Any]]:
    """Do trials in a copy of the place until one has done something, and yield what came of each.

    A command that is still at work is interrupted after `patience` times the usual seconds.
    """
    here = place / "here"
    if not here.exists():
        shutil.copytree(place / "there", here, symlinks=True)

    def compare(before: dict[str, tuple[int, ...]], words: Sequence[str]) -> tuple[dict[str, bool], bool]:
        after = state(here)
        changed = [path for path, facts in before.items() if after.get(path) != facts]
        strangers = any(path.startswith(f"{here}/strange/") for path in changed) and "--force" not in words
        return {
            "an input changed": any(path.startswith(f"{here}/in/") for path in changed),
            "a stranger changed": strangers,
            "a part is left": any(path.endswith(".part") for path in after.keys() - before.keys()),
        }, after != before

    commands = [([verb, *words], terminal, patience * ENDLESS.get(verb, WAITING)) for verb, words, terminal in trials]
    ending = None
    for (verb, words, terminal), ending in zip(
        trials, run_all(commands, here, begin=partial(state, here), compare=compare), strict=False
    ):
        problems = problems_of([verb, *words], ending, ending.changes, terminal=terminal)
        row: dict[str, Any] = {"trial": _name(verb, words, terminal=terminal), "verb": verb, "code": ending.code}
        row |= {"interrupted": ending.interrupted, "seconds": round(ending.seconds, 2), "problems": problems}
        if problems or ending.interrupted:
            said = (ending.out + ending.err)[-3000:]
            row |= {"words": words, "terminal": terminal, "said": said, "patience": patience}
        yield row
    if ending is None or ending.changed:
        (here / "locked").chmod(0o700)
        shutil.rmtree(here)


def _name(verb: str, words: Sequence[str], *, terminal: bool) -> str:
    text = json.dumps([verb, *words, terminal])
    return text if len(text) < 200 else f"{verb} ... {text[-100:]} {hashlib.sha256(text.encode()).hexdigest()[:16]}"


def latest(lines: Path) -> list[dict[str, Any]]:
    """Return what came of each trial when it was last done: a bad one is done again by the next call."""
    return list({row["trial"]: row for row in read_rows(lines)}.values())


def is_left(row: dict[str, Any], patience: float) -> bool:
    """Return whether a trial is to be done again: it was bad, or was interrupted with less patience."""
    return bool(row["problems"]) or (row["interrupted"] and row.get("patience", 1.0) < patience)


def summarise(rows: list[dict[str, Any]], singles: Sequence[Trial]) -> dict[str, Any]:
    """Count how trials ended, what was bad, and how many of those that set one flag were done."""
    problems = Counter(problem for row in rows for problem in row["problems"])
    names = {row["trial"] for row in rows}
    done = Counter(verb for verb, words, terminal in singles if _name(verb, words, terminal=terminal) in names)
    every = Counter(verb for verb, *_ in singles)
    return {
        "trials": len(rows),
        "with one flag": done.total(),
        "of": every.total(),
        "bad": sum(bool(row["problems"]) for row in rows),
        "problems": dict(problems),
        "codes": dict(sorted(Counter(str(row["code"]) for row in rows).items())),
        "interrupted": sum(row["interrupted"] for row in rows),
        "verbs": {verb: f"{done[verb]} of {count}" for verb, count in every.items()},
        "flags": sum(len(fields_of(verb)) for verb in every),
        "longest seconds": max((row["seconds"] for row in rows), default=0.0),
    }


def main() -> int:
    """Do the trials that are left, print and save the counts; 0 when none was bad."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30.0, help="the longest that this call may take")
    parser.add_argument("--more", action="store_true", help="also the extremes on the other one, and other odd values")
    parser.add_argument("--pairs", type=int, default=0, help="trials of two flags, after all that set one")
    parser.add_argument("--patience", type=float, default=1.0, help="times the seconds until a trial is interrupted")
    parser.add_argument("--seed", type=int, default=0, help="of the order of trials, and of pairs of flags")
    parser.add_argument("--only", default=",".join(VERBS), help="verbs, with commas")
    parser.add_argument("--results", type=Path, default=RESULTS, help="the folder of the results")
    args = parser.parse_args()
    verbs = args.only.split(",")
    torch.set_num_threads(1)
    import_everything()
    limit, lines = time.monotonic() + 60 * args.minutes, args.results / "flags.trials.jsonl"
    known = {row["trial"] for row in latest(lines) if not is_left(row, args.patience)}
    with tempfile.TemporaryDirectory() as name:
        place = Path(name).resolve()
        os.environ["XDG_CACHE_HOME"] = str(place / "cache")
        make_place(place / "there")
        for verb in verbs:
            shutil.copytree(place / "there", place / "warm", symlinks=True)
            import_used(partial(offline, [verb, *command(verb)]), place / "warm")
            (place / "warm" / "locked").chmod(0o700)
            shutil.rmtree(place / "warm")
            (row,) = carry_out([(verb, command(verb), False)], place, max(args.patience, WORKING_PATIENCE))
            if row["code"] not in (0, 1) and verb not in ENDLESS:
                print(f"{verb}: no command that works, {' '.join(command(verb))} ends with {row['code']}", flush=True)
        gc.freeze()  # a fork then shares what it never changes
        trials = itertools.chain(
            single_trials(verbs, args.seed),
            more_trials(verbs, args.seed) if args.more else (),
            itertools.islice(pairs(verbs, args.seed), args.pairs),
        )
        waiting = deque(each for each in trials if _name(*each[:2], terminal=each[2]) not in known)
        while waiting and time.monotonic() < limit:
            for row in carry_out(list(itertools.islice(waiting, BATCH)), place, args.patience):
                waiting.popleft()
                append_row(lines, row)
                if row["problems"]:
                    print(json.dumps(row, indent=1), flush=True)
    counts = {"date": time.strftime("%Y-%m-%d"), "command": " ".join(sys.argv), "seed": args.seed}
    counts |= summarise(latest(lines), single_trials(list(VERBS), args.seed))
    (args.results / "flags.json").write_text(json.dumps(counts, indent=1) + "\n")
    print(json.dumps(counts, indent=1))
    return int(bool(counts["bad"]))


if __name__ == "__main__":
    sys.exit(main())
