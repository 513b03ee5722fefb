"""Models of every format, folders of runs, and what commands leave beside their outputs: as `specimens.py`."""

import contextlib
import json
import tempfile
import zlib
from pathlib import Path
from typing import Any

import mutations as m
import numpy as np
import torch
from safetensors.numpy import load_file
from specimens import Read, Specimen, picture

import vitrail
from vitrail.base.lines import read_lines
from vitrail.evaluation.feature_files import read_features, write_features
from vitrail.evaluation.features import Features
from vitrail.prediction.parts import Parts
from vitrail.runs.finetune_plan import read_plan
from vitrail.runs.folder import RunFolder
from vitrail.runs.series import read_table
from vitrail.training.keeper import Keeper, read_checkpoint
from vitrail.training.state import Progress


def checkpoint(name: str = "x", *, pickle: bool = False, **settings: int) -> Read:
    """Load a model and prepare an image for it; its weights have the shapes of its config."""

    def read(folder: Path) -> str:
        model = vitrail.load(folder / name, pickle=pickle, **settings)
        labels, pixels = model.info.labels, model.info.preprocessing
        if labels is not None and len(labels) != model.config.num_classes:
            return f"{len(labels)} labels for {model.config.num_classes} classes"
        if pixels is not None and not isinstance(pixels(picture()), torch.Tensor):
            return "no input"
        shapes = {key: tensor.shape for key, tensor in vitrail.build(model.config, device="meta").state_dict().items()}
        return "" if shapes == {key: tensor.shape for key, tensor in model.state_dict().items()} else "other shapes"

    return read


def checkpoints() -> list[Specimen]:
    """Models in every format, in files and folders, and states of runs."""
    sizes = {"dim": 16, "depth": 1, "num_heads": 2, "mlp_dim": 16, "patch_size": (4, 4), "image_size": (16, 16)}
    config = vitrail.ViTConfig(**sizes, num_classes=3, gelu="erf")
    model = vitrail.build(config, seed=0)
    torch.nn.init.normal_(model.head.linear.weight)
    labels, pixels = ["ant", "bee", "cat"], vitrail.Preprocessing(image_size=(16, 16))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        about = {"labels": labels, "preprocessing": pixels}
        vitrail.save(model, folder / "own", **about)
        vitrail.save(model, folder / "timm.safetensors", to="timm", **about)
        vitrail.save(model, folder / "google.npz", to="google", lossy=True)
        vitrail.save(model, folder / "hf", to="huggingface", **about)
        vitrail.save(model, folder / "torchvision.safetensors", to="torchvision", **about)
        state = vitrail.load(folder / "torchvision.safetensors").state_dict()
        keeper = Keeper(folder=folder / "run" / "checkpoints", run="0")
        keeper.write(state, Progress())
        files = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        weights = {key: torch.from_numpy(value) for key, value in load_file(folder / "torchvision.safetensors").items()}
        torch.save(weights, folder / "new.pth")
        torch.save({"model": weights}, folder / "old.pth", _use_new_zipfile_serialization=False)
        new, old = (folder / "new.pth").read_bytes(), (folder / "old.pth").read_bytes()
    hf = {name.removeprefix("hf/"): data for name, data in files.items() if name.startswith("hf/")}
    step = next(data for name, data in files.items() if name.endswith("step-000000000.safetensors"))
    inside = m.any_of(m.zipped({".npy": m.npy, "data.pkl": m.pickled}))
    heads = {"num_heads": 2}
    return [
        Specimen(name="own", files={"x": files["own"]}, mutate=m.any_of(m.fields(1)), read=checkpoint(), signed=True),
        Specimen(name="own header", files={"x": files["own"]}, mutate=m.safetensors(sign=False), read=checkpoint()),
        Specimen(name="own resigned", files={"x": files["own"]}, mutate=m.safetensors(sign=True), read=checkpoint()),
        Specimen(
            name="timm",
            files={"x": files["timm.safetensors"]},
            mutate=m.any_of(m.safetensors(sign=False)),
            read=checkpoint(),
        ),
        Specimen(name="google", files={"x": files["google.npz"]}, mutate=inside, read=checkpoint()),
        Specimen(name="pth", files={"x": new}, mutate=inside, read=checkpoint(pickle=True, **heads)),
        Specimen(name="pth old", files={"x": old}, mutate=m.any_of(m.pickled), read=checkpoint(pickle=True, **heads)),
        *(
            Specimen(
                name=f"huggingface {first}",
                files={first: hf[first]} | hf,
                mutate=m.json_file if first.endswith("json") else m.any_of(m.safetensors(sign=False)),
                read=checkpoint(""),
            )
            for first in hf
        ),
        Specimen(
            name="huggingface bin",
            files={"pytorch_model.bin": new, **{name: data for name, data in hf.items() if name.endswith("json")}},
            mutate=inside,
            read=checkpoint("", pickle=True, **heads),
        ),
        Specimen(name="state of a run", files={"x": step}, mutate=m.any_of(m.fields(1)), read=_state, signed=True),
        Specimen(name="state resigned", files={"x": step}, mutate=m.safetensors(sign=True), read=_state),
    ]


def _state(folder: Path) -> str:
    read_checkpoint(folder / "x")
    return ""


SIZES = {"model.backbone": None, "model.dim": 16, "model.depth": 1, "model.num_heads": 2, "model.mlp_dim": 16}
SMALL: dict[str, Any] = {"batch": 4, "image_size": 8, "device": "cpu", "threads": 1, "quiet": True}


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def runs() -> list[Specimen]:
    """The folder of a run, read file by file, and resumed as a whole."""
    with tempfile.TemporaryDirectory() as name:
        out = Path(name) / "run"
        write_photos(Path(name) / "photos")
        settings = SMALL | {"settings": SIZES, "checkpoint_every": 1, "evaluate_every": 1, "skip_broken": "50%"}
        vitrail.train(Path(name) / "photos", out=out, steps=2, **settings)
        files = contents(out) | {f"photos/{path}": data for path, data in contents(Path(name) / "photos").items()}
        files["config.json"] = files["config.json"].replace(f"{name}/".encode(), b"")
        first = next(file for file in files if file.endswith("step-000000001.safetensors"))
        last = next(file for file in files if file.endswith("step-000000002.safetensors"))
        model = out / "model.safetensors"
        tuning: dict[str, Any] = SMALL | {"steps": 1, "rates": (0.01,), "runs": 1, "skip_broken": "50%"}
        vitrail.finetune(Path(name) / "photos", start=model, out=Path(name) / "tuned", **tuning)
        tuned = contents(Path(name) / "tuned")
    readers: dict[str, Read] = {
        "config.json": lambda folder: nothing(RunFolder(path=folder).read_config()),
        "result.json": lambda folder: nothing(RunFolder(path=folder).read_result()),
        "metrics.jsonl": lambda folder: nothing(read_lines(folder / "metrics.jsonl")),
    }
    plans: dict[str, Read] = {
        RunFolder(path=Path()).plan.name: lambda folder: nothing(read_plan(RunFolder(path=folder))),
        "series.json": lambda folder: nothing(read_table(folder / "series.json")),
    }
    begun = {file: data for file, data in files.items() if file not in ("model.safetensors", "result.json", last)}
    changed = {"config.json": m.json_file, "metrics.jsonl": m.lines, "skipped.jsonl": m.lines}
    return [
        *(
            Specimen(name=f"run {file}", files={file: files[file]} | files, mutate=_by_suffix(file), read=read)
            for file, read in readers.items()
        ),
        *(
            Specimen(name=f"series {file}", files={file: tuned[file]} | tuned, mutate=_by_suffix(file), read=read)
            for file, read in plans.items()
        ),
        *(
            Specimen(name=f"resumed {file}", files={file: begun[file]} | begun, mutate=change, read=resumed, slow=True)
            for file, change in (changed | {first: m.safetensors(sign=True)}).items()
        ),
    ]


def nothing(_: object) -> str:
    """Say that nothing is wrong with what was read."""
    return ""


def _by_suffix(file: str) -> m.Mutate:
    return m.json_file if file.endswith("json") else m.lines


def write_photos(folder: Path, *, broken: bool = True) -> None:
    """Write a few images of two classes, perhaps one of them broken."""
    for number in range(9):
        path = folder / "ab"[number % 2] / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(picture(number)[: 40 if broken and number == 8 else None])


def resumed(folder: Path) -> str:
    """Resume a run to its end; what it then says is finite."""
    with contextlib.chdir(folder):
        vitrail.train(resume=".", same_data=True, quiet=True)
        result = RunFolder(path=Path()).read_result()
        weights = vitrail.load("model.safetensors").state_dict().values()
    if not all(tensor.isfinite().all() for tensor in weights):
        return "weights that are not finite"
    return "" if 0 <= result.accuracy <= 1 else f"an accuracy of {result.accuracy}"


def parts() -> list[Specimen]:
    """What `predict` keeps until its table is written, and the features that `fewshot` stores."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_photos(folder / "photos")
        model = vitrail.create("Ti/4", image_size=8, num_classes=2, dim=16, depth=1, num_heads=2, mlp_dim=16, seed=0)
        torch.nn.init.normal_(model.head.linear.weight)
        pixels = vitrail.Preprocessing(image_size=(8, 8))
        vitrail.save(model, folder / "model.safetensors", labels=["a", "b"], preprocessing=pixels)
        remove, Parts.remove = Parts.remove, lambda _: None
        try:
            with contextlib.chdir(folder):
                _predict()
        finally:
            Parts.remove = remove
        (folder / "x.csv").unlink()
        features = Features(values=torch.ones(3, 4), read=np.ones(3, bool))
        write_features(folder, "key", features)
        files = contents(folder)
    job = "x.csv.parts/job.json"
    answers = next(file for file in files if file.endswith(".jsonl"))
    changes = {job: m.json_file, answers: answered}
    stored = {"key.safetensors": files["key.safetensors"]}
    return [
        *(
            Specimen(name=f"parts {Path(file).suffix}", files={file: files[file]} | files, mutate=change, read=gone_on)
            for file, change in changes.items()
        ),
        Specimen(name="features", files=stored, mutate=m.any_of(m.fields(1)), read=_features, signed=True),
        Specimen(name="features resigned", files=stored, mutate=m.safetensors(sign=True), read=_features),
    ]


def _predict() -> None:
    vitrail.predict("model.safetensors", ["photos"], out="x.csv", device="cpu", threads=1, workers=1)


def gone_on(folder: Path) -> str:
    """Go on with predictions; the table has a line for each image, and labels of the model."""
    with contextlib.chdir(folder):
        _predict()
        rows = Path("x.csv").read_text().splitlines()[1:]
    return "" if len(rows) == 9 else f"{len(rows)} lines for 9 images"


def answered(data: bytes, chance: m.Chance) -> bytes:
    """Change an answer, with a right checksum."""
    lines = data.splitlines()
    at = chance.randrange(len(lines))
    changed = json.dumps(m.tree(json.loads(lines[at])[:2], chance))
    lines[at] = f"{changed[:-1]}, {zlib.crc32(changed.encode(errors='replace'))}]".encode(errors="replace")
    return b"\n".join(lines) + b"\n"


def _features(folder: Path) -> str:
    features = read_features(folder, "key", images=3, width=4)
    return "" if features is not None and features.values.shape == (3, 4) else "other features"


def stored() -> list[Specimen]:
    """Everything that Vitrail writes and reads again."""
    return [*checkpoints(), *runs(), *parts()]
