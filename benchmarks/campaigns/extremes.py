"""The flags of every verb with words that set them to their extremes, and a folder in which commands are tried.

The words come from the type of a flag and from what `--help` calls its value: numbers beyond every bound, names that
are empty, endless, of other kinds, or obeyed by terminals, files that the command reads or that are somebody's.
"""

from importlib import import_module
from pathlib import Path

import numpy as np
import torch
from commands import STUDY
from PIL import Image

import vitrail
from vitrail.cli.usage import Field, read_fields

SMALL = ["--steps", "1", "--batch", "4", "--image-size", "8", "--out", "out"]
QUICK = ["--threads", "1", "--device", "cpu"]
TINY = ["--set", "model.dim=16", "model.depth=1", "model.num_heads=2", "model.mlp_dim=32"]
WORKING = {
    "MODEL": "in/model.safetensors",
    "DATA": "in/photos",
    "IMAGE-OR-FOLDER": "in/photos",
    "NAME": "Ti/16",
    **dict(zip(SMALL[::2], SMALL[1::2], strict=True)),
    **dict(zip(QUICK[::2], QUICK[1::2], strict=True)),
}
"""Values with which a verb that has no command below is tried, where it takes them."""
COMMANDS = {
    "convert": ["in/model.safetensors", "out.npz", "--to", "google", "--lossy"],
    "diff": ["in/model.safetensors", "in/other.safetensors"],
    "engines": ["in/model.safetensors", "--batch", "1", "--engine", "torch", "--seconds", "0.01", "--threads", "1"],
    "evaluate": ["in/model.safetensors", "in/photos", "--bootstrap", "100", *QUICK],
    "explain": ["in/model.safetensors", "in/photos/train", "--points", "3", *QUICK],
    "export": ["in/model.safetensors", "out.onnx", "--threads", "1"],
    "fewshot": ["in/model.safetensors", "in/photos", "--shots", "1", "--no-cache", *QUICK],
    "finetune": ["in/photos", "--from", "in/model.safetensors", "--rates", "0.01", "--runs", "1", *SMALL, *QUICK],
    "inspect": ["in/model.safetensors", "--data", "in/photos", "--images", "4", *QUICK],
    "models": ["Ti/16"],
    "plan": ["Ti/16"],
    "predict": ["in/model.safetensors", "in/photos", *QUICK],
    "pretrain": ["in/photos", *SMALL, *QUICK, *TINY],
    "pull": ["deit-Ti/16"],
    "recipes": ["imagenet1k-B/16"],
    "serve": ["in/model.safetensors", "--port", "0", "--threads", "1"],
    "show": ["in/model.safetensors"],
    "stress": [
        "in/model.safetensors",
        "in/photos",
        "--tests",
        "occlusion",
        "--images",
        "4",
        "--bootstrap",
        "100",
        *QUICK,
    ],
    "studies": [],
    "study": [*("in/study.toml", "--data", "in/photos", "--steps", "1", "--seeds", "1", "--out", "out"), *QUICK],
    "train": ["in/photos", *SMALL, *QUICK, *TINY],
    "verify": ["in/model.safetensors"],
    "vtab": ["in/model.safetensors", "in", "--tasks", "dtd", "--steps", "1", "--batch", "4", "--out", "out", *QUICK],
}
"""Commands that work, but for `pull`, which has no network here."""
ENDLESS = {"serve": 2.0}
"""Verbs that end when they are interrupted, and the seconds until that is done."""
LEFT_OUT = {"compile", "shard"}
"""A minute of torch.compile, and what needs ranks."""

OWNED = "\x1b]0;owned\x07"
"""What changes the title of a terminal."""
WHOLE = ["-1", "0", "4294967296", "9223372036854775807", "9" * 5000, "1.5", "nan", "", "x"]
NUMBERS = ["-1", "0", "1e-320", "1e308", "1e400", "inf", "-inf", "nan", "", "x"]
PATHS = [
    *("", "/", "nowhere", "/dev/full", "/dev/zero", "/proc/self/mem", "in/photos", "in/model.safetensors"),
    *("in/list.csv", "strange/notes.csv", "strange/page.html", "strange/folder", "locked/x.csv", "a/" * 2500),
    *(f"{OWNED}.csv", "\udcff.csv", "new.csv", "@in/list.csv"),
]
WORDS = [
    "",
    "all",
    "0",
    "-1",
    "nan%",
    "9" * 400,
    "4294967296",
    "nan",
    OWNED,
    "\udcff",
    "=",
    "model.dim=1e99",
    "B/16",
    "x" * 300,
]
EXPORTS = ["strange/beside.xml", "strange/x.onnx", "strange/x.pt2", "strange/x.xml", "new.xml", "new.pt2", "in/x.onnx"]
"""Where an exported model may be sent, besides."""
MORE_NUMBERS = ["1", "7", "-0.0", "0.5", "1e30", "9" * 30, "1e400", "1_0", "\uff13", "0x10", " 1"]
MORE_PATHS = [
    *("in/link.csv", "strange/notes.txt", "strange/photo.png", "x" * 300 + ".csv", "new"),
    *(".", "~", "-", "--", "/dev/null", "in", "strange", "in/labels.txt", "strange/plot.svg", "strange/photo.npz"),
    *(f"new{suffix}" for suffix in (".html", ".svg", ".png", ".jsonl", ".parquet", ".npz", ".safetensors")),
    *("x" * 300, "nowhere/" * 3 + "x.html", "line\nbreak.csv", "=cmd|' /C calc'!A0.csv", "@/dev/zero", "@nowhere"),
    *("in/photos/*/*.png", "{0..9}", "%s%n", " ", "all", "5", "B/16", "hf:a/b", "http://127.0.0.1:1/x"),
]
MORE_WORDS = [
    *(" ", "101%", "1000000", "1e308", "optimizer.beta2=NaN", "R50x99999", "../../etc/passwd"),
    *("auto", "off", "none", "5", "1%", "-5%", "224", "8x8", "0x0", "8x", "9223372036854775807", "inf", "line\nbreak"),
    *("model.dim", "nothing=1", "Ti/0", "\u732b", "hf:a/b", "http://127.0.0.1:1/x", "https://", "/dev/zero"),
]
READ = (
    "FILE",
    "FOLDER",
    "DATA",
    "MODEL",
    "OUT",
    "RUN",
    "ROOT",
    "SOURCE",
    "DESTINATION",
    "FIRST",
    "SECOND",
    "IMAGE",
    "real",
)
"""What `--help` calls a path."""


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
    (place / "in/keys.txt").write_text("0123456789abcdef0123456789abcdef\n")
    (place / "in/study.toml").write_text(STUDY)
    (place / "in/link.csv").symlink_to("list.csv")
    for name in ("notes.txt", "notes.csv", "page.html", "photo.png", "plot.svg", "photo.npz", "folder/config.json"):
        (place / "strange" / name).write_text("precious\n")
    for name in ("beside.bin", "x.onnx", "x.pt2", "x.xml"):
        (place / "strange" / name).write_text("precious\n")
    for split, numbers in (("train800val200", (0, 4, 2, 6)), ("test", (1, 3))):
        rows = [f"{number}.png {number // 2 % 2}\n" for number in numbers]
        (place / "in/dtd").mkdir(exist_ok=True)
        (place / f"in/dtd/{split}.txt").write_text("".join(rows))
        for number in numbers:
            Image.fromarray(chance.integers(0, 256, (8, 8, 3), np.uint8)).save(place / f"in/dtd/{number}.png")
    (place / "locked").chmod(0o500)


def values_of(field: Field) -> list[list[str]]:
    """Return words that set a field to its extremes."""
    if field.kind is bool:
        return [[field.name], [f"{field.name}=1"]]
    values = [*field.choices, "", "x"] if field.choices else _by_kind(field, WHOLE, NUMBERS, PATHS, WORDS)
    if field.positional:
        return _given(field, values)
    return [*_given(field, values), [field.name], *([[field.name, *values[1:4]]] if field.many else [])]


def more_of(field: Field) -> list[list[str]]:
    """Return words that set a field to what lies between its extremes, and is odd in another way."""
    if field.kind is bool:
        return [[field.name, field.name]]
    values = ["\udcff"] if field.choices else _by_kind(field, MORE_NUMBERS, MORE_NUMBERS, MORE_PATHS, MORE_WORDS)
    return _given(field, values) + ([[field.name, values[0], values[0]]] if field.many and not field.positional else [])


def _by_kind(field: Field, *values: list[str]) -> list[str]:
    """Choose the values of a whole number, a number, a path or a word."""
    is_path = any(name in field.metavar for name in READ)
    chosen = values[0 if field.kind is int else 1 if field.kind is float else 2 if is_path else 3]
    return [*chosen, *EXPORTS] if ".onnx" in field.metavar else chosen


def _given(field: Field, values: list[str]) -> list[list[str]]:
    return [["--", value] if field.positional else [f"{field.name}={value}"] for value in values]


def fields_of(verb: str) -> list[Field]:
    """Return what a verb takes."""
    return [
        field for field in read_fields(import_module(f"vitrail.cli.{verb}").Arguments) if field.dest not in LEFT_OUT
    ]


def command(verb: str) -> list[str]:
    """Return the words of a command that should work: the verb's own, or what its fields look like."""
    if verb in COMMANDS:
        return list(COMMANDS[verb])
    fields = fields_of(verb)
    places = [WORKING.get(field.name, "in/photos") for field in fields if field.positional]
    flags = [(field.name, WORKING[field.name]) for field in fields if not field.positional and field.name in WORKING]
    return [*places, *(word for pair in flags for word in pair)]
