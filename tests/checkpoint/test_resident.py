"""A model that was loaded does not change with its file, and never ends the process."""

import os
from pathlib import Path

import pytest
import torch

import vitrail
from tests.tiny import images_for, perturbed, vit_config
from vitrail.base.container import open_container
from vitrail.base.errors import CheckpointError

CONFIG = vit_config(dim=64, mlp_dim=256)


def saved(folder: Path, to: str) -> Path:
    names = {"huggingface": "hf", "google": "x.npz"}
    path = folder / names.get(to, "x.safetensors")
    vitrail.save(perturbed(CONFIG), path, to=to, lossy=True)
    return path


@pytest.mark.parametrize("to", ["vitrail", "timm", "huggingface", "google"])
@pytest.mark.parametrize("change", ["zeros", "nothing", "another"])
def test_weights_stay_when_the_file_is_written_over_in_place(to: str, change: str, tmp_path: Path) -> None:
    path = saved(tmp_path, to)
    model = vitrail.load(path)
    before = model(images_for(CONFIG)).detach().clone()
    file = path / "model.safetensors" if path.is_dir() else path
    other = saved(tmp_path, to).stat().st_size if change == "another" else file.stat().st_size
    with file.open("r+b") as stream:  # in place, as `cp` does: not by a new file under the same name
        if change == "nothing":
            stream.truncate(0)  # reading a page that was mapped from it would now end the process (SIGBUS)
        else:
            stream.write(b"\0" * other)
    assert torch.equal(model(images_for(CONFIG)), before)


def test_a_torch_file_is_read_as_a_whole_too(tmp_path: Path) -> None:
    vitrail.save(perturbed(CONFIG), tmp_path / "x.safetensors", to="timm", lossy=True)
    source = open_container(tmp_path / "x.safetensors").source
    torch.save({name: source[name].clone() for name in source}, tmp_path / "x.pth")
    model = vitrail.load(tmp_path / "x.pth", pickle=True, num_heads=CONFIG.num_heads, image_size=CONFIG.image_size)
    before = model(images_for(CONFIG)).detach().clone()
    os.truncate(tmp_path / "x.pth", 0)
    assert torch.equal(model(images_for(CONFIG)), before)


def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, real, calls = saved(tmp_path, "vitrail"), os.fstat, []

    def fstat(handle: int) -> os.stat_result:
        calls.append(handle)
        if len(calls) == 4:
            os.utime(path, ns=(1, 1))
        return real(handle)

    monkeypatch.setattr(os, "fstat", fstat)
    with pytest.raises(CheckpointError, match="was changed while it was read; try again"):
        open_container(path, resident=True)
