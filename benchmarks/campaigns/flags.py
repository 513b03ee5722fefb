"""Give every verb every one of its flags at its extremes, on a pseudo-terminal and in a pipe, and see how it ends.

    python benchmarks/campaigns/flags.py [--trials 4000] [--minutes 30] [--seed 0] [--only predict]

The flags and their types come from the `Arguments` of the verbs. A trial is a command that works, with one flag or two
set to what nobody should: numbers beyond every bound, names that are empty, endless, of other kinds, or obeyed by
terminals, files that the command itself reads. It is bad when it shows a traceback or a foreign exception, hangs, ends
with another code than 0, 1, 2 or 130, writes escape codes into a pipe, or changes a file that it reads or, unforced,
one that it did not write. Verbs that are new are tried too, by what their fields look like. Trials that ended well are
lines of `results/flags.trials.jsonl`, and are not done again; the counts are in `results/flags.json`.
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
from collections import Counter
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from stat import S_ISREG
from typing import Any

os.environ |= {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}

import numpy as np
import torch
from faults import import_everything
from PIL import Image
from terminals import Ending, run

import vitrail
from vitrail.base.lines import append_row, read_rows
from vitrail.cli.main import VERBS
from vitrail.cli.usage import Field, read_fields

RESULTS = Path(__file__).parents[1] / "results"
WORKING = {
    "MODEL": "in/model.safetensors",
    "DATA": "in/photos",
    "IMAGE-OR-FOLDER": "in/photos",
    "NAME": "Ti/16",
    "--steps": "1",
    "--batch": "4",
    "--image-size": "8",
    "--threads": "1",
    "--device": "cpu",
    "--out": "out",
}
"""Values with which a verb that has no command below is tried, where it takes them."""
TINY = ["--set", "model.dim=16", "model.depth=1", "model.num_heads=2", "model.mlp_dim=32"]
SMALL = ["--steps", "1", "--batch", "4", "--image-size", "8", "--out", "out"]
QUICK = ["--threads", "1", "--device", "cpu"]
COMMANDS = {
    "convert": ["in/model.safetensors", "out.npz", "--to", "google", "--lossy"],
    "diff": ["in/model.safetensors", "in/other.safetensors"],
    "evaluate": ["in/model.safetensors", "in/photos", "--bootstrap", "100", *QUICK],
    "explain": ["in/model.safetensors", "in/photos/train", "--points", "3", "--steps", "2", *QUICK],
    "fewshot": ["in/model.safetensors", "in/photos", "--shots", "1", "--no-cache", *QUICK],
    "finetune": ["in/photos", "--from", "in/model.safetensors", "--rates", "0.01", "--runs", "1", *SMALL, *QUICK],
    "models": ["Ti/16"],
    "plan": ["Ti/16"],
    "predict": ["in/model.safetensors", "in/photos", *QUICK],
    "pretrain": ["in/photos", *SMALL, *QUICK, *TINY],
    "pull": ["deit-Ti/16"],
    "recipes": [],
    "show": ["in/model.safetensors"],
    "train": ["in/photos", *SMALL, *QUICK, *TINY],
    "vtab": ["in/model.safetensors", "in", "--tasks", "dtd", "--steps", "1", "--batch", "4", "--out", "out", *QUICK],
}
"""Commands that work, but for `pull`, which has no network here, and the last, whose tasks are not there."""
LEFT_OUT = {"compile", "shard"}
"""A minute of torch.compile, and what needs ranks."""

OWNED = "\x1b]0;owned\x07"
"""What changes the title of a terminal."""
WHOLE = ["-1", "0", "1", "2", "7", "4294967296", "9223372036854775807", "9" * 30, "9" * 5000]
NUMBERS = [
    "-0.0",
    "1e-320",
    "0.5",
    "1.5",
    "1e30",
    "1e308",
    "1e400",
    "inf",
    "-inf",
    "nan",
    "1_0",
    "\uff13",
    "0x10",
    " 1",
]
PATHS = [
    *(".", "/", "~", "-", "--", "nowhere", "/dev/null", "/dev/full", "/dev/zero", "/proc/self/mem", "in", "strange"),
    *("in/photos", "in/model.safetensors", "in/list.csv", "in/labels.txt", "strange/notes.txt", "strange/notes.csv"),
    *(
        "strange/page.html",
        "strange/photo.png",
        "strange/plot.svg",
        "strange/photo.npz",
        "strange/folder",
        "locked/x.csv",
    ),
    *(f"new{suffix}" for suffix in ("", ".csv", ".html", ".svg", ".png", ".jsonl", ".parquet", ".npz", ".safetensors")),
    *(
        "x" * 300,
        "x" * 300 + ".csv",
        "a/" * 2500,
        "nowhere/" * 3 + "x.html",
        f"{OWNED}.csv",
        "line\nbreak.csv",
        "\udcff.csv",
    ),
    *(
        "=cmd|' /C calc'!A0.csv",
        "@in/list.csv",
        "@/dev/zero",
        "@nowhere",
        "in/photos/*/*.png",
        "{0..9}",
        "%s%n",
        "in/link.csv",
    ),
]
WORDS = [
    "",
    " ",
    "all",
    "auto",
    "off",
    "none",
    "5",
    "1%",
    "101%",
    "-5%",
    "nan%",
    "224",
    "8x8",
    "0x0",
    "1000000",
    "8x",
    "9" * 400,
]
WORDS += ["model.dim=1e99", "model.dim", "=", "optimizer.beta2=NaN", "nothing=1", "B/16", "Ti/0", "R50x99999", "\u732b"]
EXTREMES = {
    int: [*WHOLE, *NUMBERS, "", "x"],
    float: [*WHOLE, *NUMBERS, "", "x"],
    str: [*PATHS, *WORDS, *WHOLE, *NUMBERS],
}


def make_place(place: Path) -> None:
    """Write what the commands read, and what they must leave alone."""
    chance = np.random.default_rng(0)
    for folder in ("in", "strange/folder", "locked"):
        (place / folder).mkdir(parents=True)
    for number in range(12):
        path = (
            place
            / "in/photos"
            / ("train", "test")[number % 2]
            / ("ant", f"b{OWNED}e")[number // 2 % 2]
            / f"{number}.png"
        )
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(chance.integers(0, 256, (8, 8, 3), np.uint8)).save(path)
    for name in ("model", "other"):
        model = vitrail.create(
            "Ti/4", image_size=8, num_classes=2, dim=16, depth=1, num_heads=2, mlp_dim=32, seed=len(name)
        )
        torch.nn.init.normal_(model.head.linear.weight)
        pixels = vitrail.Preprocessing(image_size=(8, 8))
        vitrail.save(model, place / f"in/{name}.safetensors", labels=["ant", f"b{OWNED}e"], preprocessing=pixels)
    (place / "in/list.csv").write_text("path,label\nphotos/train/ant/0.png,ant\nphotos/test/ant/1.png,ant\n")
    (place / "in/labels.txt").write_text("ant\nbee\n")
    (place / "in/link.csv").symlink_to("list.csv")
    for name in ("notes.txt", "notes.csv", "page.html", "photo.png", "plot.svg", "photo.npz", "folder/config.json"):
        (place / "strange" / name).write_text("precious\n")
    (place / "locked").chmod(0o500)


def values_of(field: Field) -> list[list[str]]:
    """Return words that set a field to its extremes."""
    if field.kind is bool:
        return [[field.name], [f"{field.name}=1"], [field.name, field.name]]
    values = [*field.choices, "", "x", "\udcff"] if field.choices else EXTREMES[field.kind]
    if field.positional:
        return [["--", value] for value in values]
    words = [[f"{field.name}={value}"] for value in values] + [[field.name]]
    return [*words, [field.name, *values[:3]], [field.name, values[0], values[0]]] if field.many else words


def trials(seed: int, only: str | None) -> Iterator[tuple[str, list[str], bool]]:
    """Yield verbs with words and whether they are on a terminal: all that set one flag, then pairs without end.

    Every flag has its turn before one has its next value, so that some of the trials are some of every flag.
    """
    chance = random.Random(seed)  # noqa: S311
    known = [(verb, field) for verb in VERBS for field in fields_of(verb) if field.dest not in LEFT_OUT]
    known = [(verb, field) for verb, field in known if only in (None, verb)]
    chance.shuffle(known)
    values = [values_of(field) for _, field in known]
    for words in values:
        chance.shuffle(words)
    for turn in range(max(map(len, values))):
        for (verb, field), words in zip(known, values, strict=True):
            if turn < len(words):
                yield verb, _placed(verb, field, words[turn]), bool(turn % 2)
    while True:
        verb, field = chance.choice(known)
        other = chance.choice([other for owner, other in known if owner == verb and not other.positional])
        words = _placed(verb, field, chance.choice(values_of(field)))
        yield verb, [*chance.choice(values_of(other)), *words], bool(chance.getrandbits(1))


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


def fields_of(verb: str) -> list[Field]:
    return read_fields(import_module(f"vitrail.cli.{verb}").Arguments)


def command(verb: str) -> list[str]:
    """Return the words of a command that should work: the verb's own, or what its fields look like."""
    if verb in COMMANDS:
        return list(COMMANDS[verb])
    fields = fields_of(verb)
    places = [WORKING.get(field.name, "in/photos") for field in fields if field.positional]
    flags = [(field.name, WORKING[field.name]) for field in fields if not field.positional and field.name in WORKING]
    return [*places, *(word for pair in flags for word in pair)]


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


def carry_out(verb: str, words: list[str], place: Path, *, terminal: bool) -> dict[str, Any]:
    """Do one trial in a copy of the place, and return what came of it."""
    here = place / "here"
    if not here.exists():
        shutil.copytree(place / "there", here, symlinks=True)
    before = state(here)
    ending = run([verb, *words], here, terminal=terminal)
    after = state(here)
    changed = [path for path, facts in before.items() if after.get(path) != facts]
    changes = {
        "an input changed": any(path.startswith(f"{here}/in/") for path in changed),
        "a stranger changed": any(path.startswith(f"{here}/strange/") for path in changed) and "--force" not in words,
        "a part is left": any(path.endswith(".part") for path in after.keys() - before.keys()),
    }
    problems = problems_of([verb, *words], ending, changes, terminal=terminal)
    if after != before:
        (here / "locked").chmod(0o700)
        shutil.rmtree(here)
    row: dict[str, Any] = {"trial": _name(verb, words, terminal=terminal), "verb": verb, "code": ending.code}
    row |= {"interrupted": ending.interrupted, "seconds": round(ending.seconds, 2), "problems": problems}
    if problems:
        row |= {"words": words, "terminal": terminal, "said": (ending.out + ending.err)[-3000:]}
    return row


def _name(verb: str, words: Sequence[str], *, terminal: bool) -> str:
    text = json.dumps([verb, *words, terminal])
    return text if len(text) < 200 else f"{verb} ... {text[-100:]} {hashlib.sha256(text.encode()).hexdigest()[:16]}"


def latest(lines: Path) -> list[dict[str, Any]]:
    """Return what came of each trial when it was last done: a bad one is done again by the next call."""
    return list({row["trial"]: row for row in read_rows(lines)}.values())


def summarise(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Count how trials ended, and what was bad."""
    problems = Counter(problem for row in rows for problem in row["problems"])
    return {
        "trials": len(rows),
        "bad": sum(bool(row["problems"]) for row in rows),
        "problems": dict(problems),
        "codes": dict(sorted(Counter(str(row["code"]) for row in rows).items())),
        "interrupted": sum(row["interrupted"] for row in rows),
        "verbs": dict(Counter(row["verb"] for row in rows)),
        "longest seconds": max((row["seconds"] for row in rows), default=0.0),
    }


def main() -> int:
    """Do the trials that are left, print and save the counts; 0 when none was bad."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=4000, help="trials in all, those of earlier calls included")
    parser.add_argument("--minutes", type=float, default=30.0, help="the longest that this call may take")
    parser.add_argument("--seed", type=int, default=0, help="of the order of trials, and of pairs of flags")
    parser.add_argument("--only", choices=VERBS, help="one verb")
    parser.add_argument("--results", type=Path, default=RESULTS, help="the folder of the results")
    args = parser.parse_args()
    torch.set_num_threads(1)
    import_everything()
    gc.freeze()  # a fork then shares what it never changes
    limit, lines = time.monotonic() + 60 * args.minutes, args.results / "flags.trials.jsonl"
    known = {row["trial"] for row in latest(lines) if not row["problems"]}
    with tempfile.TemporaryDirectory() as name:
        place = Path(name).resolve()
        os.environ["XDG_CACHE_HOME"] = str(place / "cache")
        make_place(place / "there")
        for verb in VERBS if args.only is None else [args.only]:
            row = carry_out(verb, command(verb), place, terminal=False)
            if row["code"] not in (0, 1):
                print(f"{verb}: no command that works, {' '.join(command(verb))} ends with {row['code']}", flush=True)
        bad = [row for row in latest(lines) if row["problems"] and args.only in (None, row["verb"])]
        again = [(row["verb"], row["words"], row["trial"].endswith("true]") or row.get("terminal")) for row in bad]
        for number, (verb, words, terminal) in enumerate(itertools.chain(again, trials(args.seed, args.only))):
            if (len(known) >= args.trials and number >= len(again)) or time.monotonic() > limit:
                break
            if _name(verb, words, terminal=bool(terminal)) in known:
                continue
            row = carry_out(verb, words, place, terminal=bool(terminal))
            append_row(lines, row)
            known.add(row["trial"])
            if row["problems"]:
                print(json.dumps(row, indent=1), flush=True)
    counts = {"date": time.strftime("%Y-%m-%d"), "command": " ".join(sys.argv), "seed": args.seed}
    counts |= summarise(latest(lines))
    (args.results / "flags.json").write_text(json.dumps(counts, indent=1) + "\n")
    print(json.dumps(counts, indent=1))
    return int(bool(counts["bad"]))


if __name__ == "__main__":
    sys.exit(main())
