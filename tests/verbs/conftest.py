"""Files that the verbs look at: a model, one that differs in a bias, a folder of photos, two tasks of VTAB-1k."""

from pathlib import Path

import pytest
import torch

import vitrail
from tests.data.pictures import encoded, photo
from tests.studies.making import made_task
from tests.tiny import perturbed, vit_config


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with model.safetensors, other.safetensors and photos/ of two classes, which is the current one."""
    monkeypatch.chdir(tmp_path)
    model = perturbed(vit_config(image_size=(16, 16), num_classes=2))
    pixels = vitrail.Preprocessing(image_size=(16, 16))
    vitrail.save(model, "model.safetensors", labels=["ant", "bee"], preprocessing=pixels)
    with torch.no_grad():
        model.head.linear.bias[1] += 0.5
    vitrail.save(model, "other.safetensors", labels=["ant", "bee"], preprocessing=pixels)
    for number in range(8):
        file = tmp_path / "photos" / ("ant", "bee")[number % 2] / f"{number}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(encoded(photo(number, 30, 20)))
    for seed, task in enumerate(("dtd", "svhn")):
        made_task(tmp_path / "vtab-1k" / task, seed)
    return tmp_path
