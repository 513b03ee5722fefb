"""Files that were asked for are there whole, whoever reads stdout: `vitrail evaluate ... --csv x.csv | head`."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import vitrail
from tests.tiny import perturbed, vit_config
from tests.training.making import CLASSES, made_dataset
from vitrail.cli.main import main

pytestmark = pytest.mark.usefixtures("unchecked")
QUICK = ("--threads", "1", "--device", "cpu")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    config = vit_config(image_size=(8, 8), patch_size=(4, 4), num_classes=3)
    pixels = vitrail.Preprocessing(image_size=(8, 8), mean=(0.5,) * 3, std=(0.5,) * 3)
    path = tmp_path_factory.mktemp("model") / "model.safetensors"
    return vitrail.save(perturbed(config, by=0.5), path, labels=CLASSES, preprocessing=pixels)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    for split, seed in (("train", 0), ("test", 1)):
        made = made_dataset(24, seed=seed)
        for index, image in enumerate(made.pictures.images):  # type: ignore[attr-defined]
            path = folder / split / CLASSES[made.targets[index]] / f"{index:02d}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(np.asarray(image)).save(path)
    return folder


@contextmanager
def nobody_reads(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Give stdout a reader that has left, so that the first line fails."""
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w", buffering=1) as stream, monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", stream)
        yield


VERBS = {
    "evaluate": (["{model}", "{data}", "--bootstrap", "100", "--csv", "x.csv", "--html", "x.html", *QUICK], 2),
    "fewshot": (["{model}", "{data}", "--shots", "1", "--no-cache", "--plot", "x.svg", *QUICK], 1),
    "data": (["{data}", "--sheet", "x.html", "--clean", "x.csv"], 2),
    "predict": (["{model}", "{data}", "--out", "x.csv", *QUICK], 1),
    "convert": (["{model}", "x.npz", "--to", "google"], 1),
    "train": (["{data}", "--out", "x", "--steps", "1", "--batch", "4", *QUICK], 1),
    "pretrain": (["{data}", "--out", "x", "--steps", "1", "--batch", "4", "--probe", "none", *QUICK], 1),
    "finetune": (["{data}", "--from", "{model}", "--quick", "--steps", "1", "--batch", "4", "--out", "x", *QUICK], 1),
    "explain": (["{model}", "{data}/test", "--method", "rollout", "--points", "2", "--out", "x", *QUICK], 1),
    "inspect": (["{model}", "--data", "{data}", "--images", "4", "--examples", "1", "--out", "x", *QUICK], 1),
    "stress": (["{model}", "{data}", "--tests", "grid", "--images", "4", "--out", "x", *QUICK], 1),
}
PAGES = {
    "train": "report",
    "pretrain": "report",
    "finetune": "report",
    "explain": "explanations",
    "inspect": "inspection",
    "stress": "stress",
}
"""The page in the folder of those that write one."""


@pytest.mark.parametrize("json", [False, True])
@pytest.mark.parametrize("verb", VERBS)
def test_files_are_written_though_nobody_reads_stdout(verb, json, model, data, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    words, files = VERBS[verb]
    words = [word.format(model=model, data=data) for word in words]
    with nobody_reads(monkeypatch):
        assert main([verb, *words, *["--json"] * json]) == 0
    written = [path.name for path in tmp_path.iterdir()]
    assert len(written) == files
    assert not any(name.endswith(".part") for name in written)
    if verb in PAGES:
        assert (tmp_path / f"x/{PAGES[verb]}.html").is_file()


def test_the_csv_is_whole_behind_a_real_pipe(model, data, tmp_path) -> None:
    words = ["evaluate", str(model), str(data), "--csv", str(tmp_path / "x.csv"), "--bootstrap", "100", *QUICK]
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([sys.executable, "-m", "vitrail", *words], stdout=writer, stderr=writer, check=False)
    os.close(writer)
    assert done.returncode == 0
    assert len((tmp_path / "x.csv").read_text().splitlines()) == 25


def test_a_stdout_that_is_closed_is_no_error() -> None:
    command = f"{sys.executable} -m vitrail models B/16 >&-"
    done = subprocess.run(["bash", "-c", command], stderr=subprocess.PIPE, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
