"""The commands that `kill.py` disturbs, what they read, and what of their outputs must be the same."""

import json
import os
from hashlib import sha256
from pathlib import Path

import numpy as np
from PIL import Image

from vitrail.base.container import open_container

TINY = [
    *("--image-size", "8", "--batch", "8", "--threads", "1", "--device", "cpu", "--checkpoint-every", "1"),
    *("--set", "model.backbone=none", "model.dim=16", "model.depth=1", "model.num_heads=2", "model.mlp_dim=32"),
]
STUDENT = ["objective.prototypes=16", "objective.hidden=16", "objective.bottleneck=8", "objective.local_views=2"]
STUDY = """name = "smoothing"
question = "Does it help?"
[recipe]
"model.dim" = 16
"model.depth" = 1
"model.num_heads" = 2
"model.mlp_dim" = 32
batch = 4
[factors.smoothing]
none = {"objective.label_smoothing" = 0.0}
some = {"objective.label_smoothing" = 0.1}
"""
KINDS = [
    ("pull", 1),
    ("study", 1),
    *((verb, ranks) for ranks in (1, 2) for verb in ("train", "finetune", "pretrain", "predict")),
]
"""Commands, and the ranks that they run on."""
REGULARISED = ["--averaging", "0.9", "--mixup", "0.2", "--dropout", "0.1"]


def make_data(place: Path) -> None:
    """Write 36 images of 8x8 pixels and three classes, as arrays and as files."""
    chance = np.random.default_rng(0)
    targets = np.arange(36) % 3
    images = chance.integers(0, 90, (36, 8, 8, 3), dtype=np.uint8)
    images[targets == 1] += 120
    images[targets == 2, :, :4] += 120
    np.savez(place / "data.npz", x_train=images[:30], y_train=targets[:30], x_test=images[30:], y_test=targets[30:])
    for number, image in enumerate(images):
        path = place / "photos" / str(targets[number]) / f"{number:02}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(path)
    (place / "study.toml").write_text(STUDY)


def command(verb: str, place: Path, out: Path) -> list[str]:
    """Return the words of a command that writes into a folder."""
    if verb == "train":
        words = ["train", str(place / "data.npz"), *TINY, *REGULARISED, "--steps", "6", "--evaluate-every", "3"]
        return [*words, "--out", str(out / "run")]
    if verb == "finetune":
        words = ["finetune", str(place / "data.npz"), "--from", str(place / "start.safetensors"), "--steps", "3"]
        words += ["--rates", "0.01", "0.03", "--runs", "2", "--batch", "8", "--threads", "1", "--device", "cpu"]
        return [*words, "--checkpoint-every", "1", "--out", str(out / "run")]
    if verb == "pretrain":
        words = ["pretrain", str(place / "data.npz"), "--objective", "dino", *TINY, *STUDENT, "--steps", "6"]
        return [*words, "--evaluate-every", "3", "--out", str(out / "run")]
    if verb == "study":
        words = ["study", str(place / "study.toml"), "--data", str(place / "data.npz"), "--steps", "2", "--seeds", "1"]
        return [*words, "--threads", "1", "--device", "cpu", "--out", str(out / "study")]
    if verb == "pull":
        return ["pull", os.environ["PUBLISHED"]]
    words = ["predict", str(place / "start.safetensors"), str(place / "photos"), "--batch", "2", "--workers", "1"]
    return [*words, "--threads", "1", "--device", "cpu", "--out", str(out / "answers.csv")]


def contents(verb: str, out: Path) -> dict[str, str]:
    """Digest what must be the same: the tensors of every model, every file of metrics, every table."""
    if verb == "predict":
        return {"answers.csv": sha256((out / "answers.csv").read_bytes()).hexdigest()}
    if verb == "pull":
        files = [path for path in (out / "cache" / "pulled").rglob("*") if path.is_file()]
        (record,) = (json.loads(path.read_text())["files"] for path in files if path.name == "pulled.json")
        names = {path.name: sha256(path.read_bytes()).hexdigest() for path in files if path.name != "pulled.json"}
        return names | {"record": json.dumps(record)}
    parts = {}
    for path in sorted(out.rglob("*")):
        name = str(path.relative_to(out))
        if path.name in ("metrics.jsonl", "series.json"):
            parts[name] = path.read_bytes()
        elif path.name == "model.safetensors":
            model = open_container(path)
            parts[name] = b"".join(key.encode() + model.tensor(key).numpy().tobytes() for key in sorted(model.places))
    return {name: sha256(part).hexdigest() for name, part in parts.items()}
