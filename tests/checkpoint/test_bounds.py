"""What a file may claim: refused before memory is taken, and files of ours that are not models are told apart."""

import json
import os
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch

import vitrail
from tests.checkpoint.making import made
from tests.checkpoint.test_store import with_header
from tests.tiny import vit_config
from vitrail import CheckpointError, ConfigError, InputError, Preprocessing
from vitrail.base import memory
from vitrail.base.container import write_container
from vitrail.base.tensors import from_tensors
from vitrail.data.index import write_arrays


@pytest.fixture
def path(tmp_path: Path) -> Path:
    preprocessing = Preprocessing(image_size=(12, 16))
    return vitrail.save(made(vit_config()), tmp_path / "model.safetensors", preprocessing=preprocessing)


def test_a_pipe_or_a_device_is_not_a_model(tmp_path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for place, kind in (
        (tmp_path / "pipe", "a pipe"),
        (Path("/dev/zero"), "a device"),
        (Path("/dev/null"), "a device"),
    ):
        with pytest.raises(CheckpointError, match=f"{place} is {kind}, but a regular file is needed"):
            vitrail.load(place, pickle=True)
    with pytest.raises(CheckpointError, match="cannot be read: File name too long"):
        vitrail.load("x" * 5000)


def test_preprocessing_of_other_images_than_the_models_is_refused_when_it_is_read(path) -> None:
    def enlarge(header) -> None:
        pixels = json.loads(header["__metadata__"]["vitrail.preprocessing"])
        header["__metadata__"]["vitrail.preprocessing"] = json.dumps(pixels | {"image_size": [1200, 1600]})

    with_header(path, enlarge)
    with pytest.raises(CheckpointError, match="images of 1200x1600 with 3 channels, but the model takes 12x16"):
        vitrail.load(path)


def test_preprocessing_to_an_enormous_size_is_refused() -> None:
    assert Preprocessing(image_size=(4096, 4096)).image_size == (4096, 4096)
    with pytest.raises(ConfigError, match=r"\(30000, 30000\) has 900,000,000 pixels, .* VITRAIL_LIMIT_INPUT_PIXELS"):
        Preprocessing(image_size=(30000, 30000))


def test_a_model_that_does_not_fit_into_memory_is_refused_before_it_is_built(path, monkeypatch) -> None:
    with pytest.raises(InputError, match=r"the model of .* needs 1\.20 TiB of memory, but this machine has"):
        vitrail.load(path, num_classes=10**10)
    values = sum(tensor.numel() for tensor in vitrail.load(path).state_dict().values())
    monkeypatch.setattr(memory, "machine_memory", lambda: 4 * values)
    vitrail.load(path)
    monkeypatch.setattr(memory, "machine_memory", lambda: 4 * values - 1)
    with pytest.raises(InputError, match="of memory, but this machine has"):
        vitrail.load(path)


@pytest.mark.parametrize("settings", [{"image_size": (120_000, 160_000)}, {"num_classes": 10**18}])
def test_impossible_sizes_asked_for_are_refused_in_a_sentence(path, settings) -> None:
    with pytest.raises(ConfigError, match=r"VITRAIL_LIMIT_TOKENS|cannot be built"):
        vitrail.load(path, **settings)


def test_a_checkpoint_of_a_run_says_what_it_is_and_which_file_to_give(path, tmp_path) -> None:
    folder = tmp_path / "checkpoints"
    folder.mkdir()
    with (folder / "step-000000010.safetensors").open("w+b") as file:
        tensors = from_tensors({"weight": torch.zeros(2)}, "the run")
        write_container(file, tensors, {"vitrail.run": "0", "vitrail.progress": "{}"}, digest=True)
    with pytest.raises(CheckpointError, match=f"a checkpoint to resume a run from, not a model; give {path}"):
        vitrail.load(folder / "step-000000010.safetensors")
    path.unlink()
    with pytest.raises(CheckpointError, match=r"finish the run, which then writes model\.safetensors"):
        vitrail.load(folder / "step-000000010.safetensors")


def test_an_index_of_images_is_not_a_model(tmp_path) -> None:
    write_arrays(tmp_path / "x.index", {}, {"targets": np.zeros(3, np.int32)})
    with pytest.raises(CheckpointError, match="is an index of images, not a model; give it as data"):
        vitrail.load(tmp_path / "x.index")


def test_a_torch_file_that_unpacks_to_far_more_than_it_is_is_refused(tmp_path) -> None:
    with zipfile.ZipFile(tmp_path / "x.pth", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", bytes(300 * 2**20))
    with pytest.raises(CheckpointError, match=r"would unpack to 300\.00 MiB, more than 8 times as much"):
        vitrail.load(tmp_path / "x.pth", pickle=True)
