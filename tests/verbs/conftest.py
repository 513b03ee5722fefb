"""Files that the verbs look at: a model, one that differs in a bias, a folder of photos, two tasks of VTAB-1k."""

import shutil
from pathlib import Path

import pytest
import torch

import vitrail
from tests.data.pictures import encoded, photo
from tests.studies.making import made_task
from tests.tiny import perturbed, vit_config


@pytest.fixture
def workplace(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with model.safetensors, other.safetensors and photos/ of two classes, which is the current one."""
    template = tmp_path_factory.getbasetemp() / "workplace"  # once for all tests of a worker
    if not template.exists():
        _make(template)
    shutil.copytree(template, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _make(folder: Path) -> None:
    folder.mkdir()
    model = perturbed(vit_config(image_size=(16, 16), num_classes=2))
    pixels = vitrail.Preprocessing(image_size=(16, 16))
    vitrail.save(model, folder / "model.safetensors", labels=["ant", "bee"], preprocessing=pixels)
    with torch.no_grad():
        model.head.linear.bias[1] += 0.5
    vitrail.save(model, folder / "other.safetensors", labels=["ant", "bee"], preprocessing=pixels)
    for number in range(8):
        file = folder / "photos" / ("ant", "bee")[number % 2] / f"{number}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(encoded(photo(number, 30, 20)))
    for seed, task in enumerate(("dtd", "svhn")):
        made_task(folder / "vtab-1k" / task, seed)
