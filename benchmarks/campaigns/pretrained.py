"""The folders of runs without labels, one for each kind of objective: as `specimens.py`."""

import contextlib
import tempfile
from pathlib import Path
from typing import Any

import mutations as m
from specimens import Read, Specimen
from stored import SIZES, SMALL, contents, nothing, write_photos

import vitrail
from vitrail.runs.folder import RunFolder

SETTINGS: dict[str, Any] = SMALL | {"checkpoint_every": 1, "evaluate_every": 1, "skip_broken": "50%"}
DECODER = {"dim": 16, "depth": 1, "num_heads": 2, "mlp_dim": 16}
OBJECTIVES: dict[str, dict[str, Any]] = {
    "mae": {f"objective.decoder.{name}": value for name, value in DECODER.items()},
    "dino": {"objective.prototypes": 16, "objective.hidden": 16, "objective.bottleneck": 8, "objective.local_views": 1},
}


def pretrained() -> list[Specimen]:
    """Runs of masked autoencoders and of a student with its teacher: read file by file, and resumed as a whole."""
    return [specimen for objective, settings in OBJECTIVES.items() for specimen in _run(objective, settings)]


def _run(objective: str, settings: dict[str, Any]) -> list[Specimen]:
    with tempfile.TemporaryDirectory() as name:
        out = Path(name) / "run"
        write_photos(Path(name) / "photos")
        chosen = SETTINGS | {"objective": objective, "settings": SIZES | settings, "probe": "none"}
        vitrail.pretrain(Path(name) / "photos", out=out, steps=2, **chosen)
        files = contents(out) | {f"photos/{path}": data for path, data in contents(Path(name) / "photos").items()}
        files["config.json"] = files["config.json"].replace(f"{name}/".encode(), b"")
    first, last = (next(file for file in files if file.endswith(f"step-00000000{step}.safetensors")) for step in (1, 2))
    begun = {file: data for file, data in files.items() if file not in ("model.safetensors", "result.json", last)}
    changes = {"config.json": m.json_file, "metrics.jsonl": m.lines, first: m.safetensors(sign=True)}
    readers: dict[str, Read] = {
        "config.json": lambda folder: nothing(RunFolder(path=folder).read_config()),
        "result.json": lambda folder: nothing(RunFolder(path=folder).read_result()),
    }
    return [
        *(
            Specimen(name=f"{objective} {file}", files={file: files[file]} | files, mutate=m.json_file, read=read)
            for file, read in readers.items()
        ),
        *(
            Specimen(
                name=f"{objective} resumed {Path(file).suffix}",
                files={file: begun[file]} | begun,
                mutate=change,
                read=resumed,
                slow=True,
            )
            for file, change in changes.items()
        ),
    ]


def resumed(folder: Path) -> str:
    """Resume a run to its end; its weights are finite."""
    with contextlib.chdir(folder):
        vitrail.pretrain(resume=".", same_data=True, quiet=True)
        weights = vitrail.load("model.safetensors").state_dict().values()
    return "" if all(tensor.isfinite().all() for tensor in weights) else "weights that are not finite"
