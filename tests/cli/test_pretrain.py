"""`vitrail pretrain` as it is used: a run folder, the same run again, longer, stopped; one sentence for bad input."""

import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import vitrail
from tests.cli.test_train import _said
from tests.training.making import CLASSES, made_archive, made_dataset
from vitrail.base.lines import read_rows
from vitrail.cli.main import main

pytestmark = pytest.mark.usefixtures("unchecked")
SHORT = ("--steps", "6", "--batch", "6", "--threads", "1", "--device", "cpu")
QUICK = (*SHORT, "--set", "model.depth=1")
KINDS = ("masked-patch", "mae", "dino", "moco")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_archive(tmp_path_factory.mktemp("data") / "made.npz")


@pytest.fixture(scope="module")
def finished(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "run"
    assert main(["pretrain", str(data), *QUICK, "--objective", "mae", "--out", str(out)]) == 0
    return out


def photos(folder: Path, count: int = 24) -> Path:
    """Photos in folders of folders, sorted by nothing."""
    for index, image in enumerate(made_dataset(count).pictures.images):  # type: ignore[attr-defined]
        path = folder / ("first", "second/inner")[index % 2] / f"{index:02}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(path)
    return folder


def same_weights(one: Path, other: Path) -> bool:
    ours, theirs = (vitrail.load(run / "model.safetensors").state_dict() for run in (one, other))
    return all(ours[name].equal(theirs[name]) for name in ours)


def test_the_result_is_one_json_object(finished: Path, data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["pretrain", str(data), *QUICK, "--objective", "mae", "--out", str(finished)]
    assert main([*words, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["steps"] == 6
    assert result["run"] == str(finished)
    assert 0 <= result["probe_accuracy"] <= 1
    model = vitrail.load(finished / "model.safetensors")
    assert model.config.num_classes == 0
    assert model.info.provenance["config"]["objective"]["kind"] == "mae"
    assert model.info.provenance["config"]["data"]["where"] == data.name


def test_the_stored_config_makes_the_same_run_again(finished: Path, tmp_path: Path) -> None:
    again = tmp_path / "again"
    assert main(["pretrain", "--config", str(finished / "config.json"), "--threads", "1", "--out", str(again)]) == 0
    assert (again / "metrics.jsonl").read_bytes() == (finished / "metrics.jsonl").read_bytes()
    assert same_weights(finished, again)


@pytest.mark.parametrize("kind", KINDS)
def test_a_longer_training_begins_with_the_state_of_the_old(
    kind: str, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["pretrain", str(data), *QUICK, "--objective", kind, "--out", "run"]) == 0
    before = (tmp_path / "run" / "model.safetensors").read_bytes()
    capsys.readouterr()
    words = ["pretrain", "--extend", "run", "--threads", "1"]
    assert "--objective cannot change a stored run" in _said([*words, "--steps", "2", "--objective", "mae"], capsys)
    assert main([*words, "--steps", "2"]) == 0
    assert json.loads(Path("run-extended/result.json").read_text())["steps"] == 8
    assert {row["step"] for row in read_rows(Path("run-extended/metrics.jsonl"))} <= {7, 8}
    assert (tmp_path / "run" / "model.safetensors").read_bytes() == before
    assert not same_weights(Path("run"), Path("run-extended"))


def test_the_objective_of_a_run_cannot_be_changed_by_its_config(
    finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["pretrain", "--config", str(finished / "config.json"), "--objective", "dino", "--out", str(tmp_path / "x")]
    assert "--objective" in _said(words, capsys)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["mae", "dino"])
def test_ctrl_c_saves_and_the_same_command_resumes(kind: str, data: Path, tmp_path: Path) -> None:
    words = ["pretrain", str(data), "--objective", kind, "--steps", "100", "--batch", "6", "--threads", "1"]
    words += ["--device", "cpu", "--checkpoint-every", "1000", "--evaluate-every", "50", "--out"]
    straight, stopped = tmp_path / "straight", tmp_path / "stopped"
    assert main([*words, str(straight)]) == 0
    command = [sys.executable, "-m", "vitrail", *words, str(stopped)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    while len(read_rows(stopped / "metrics.jsonl")) < 3 and process.poll() is None:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert "the same command resumes from there" in said
    assert not (stopped / "model.safetensors").exists()
    assert main([*words, str(stopped)]) == 0
    assert (stopped / "metrics.jsonl").read_bytes() == (straight / "metrics.jsonl").read_bytes()
    assert same_weights(straight, stopped)


def test_photos_in_any_order_and_several_places_are_learned_from_together(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, out = photos(tmp_path / "photos"), tmp_path / "run"
    assert main(["pretrain", str(folder), str(data), *QUICK, "--probe", "neighbours", "--out", str(out)]) == 0
    config = json.loads((out / "config.json").read_text())
    assert config["data"]["others"] == [str(data)]
    assert config["facts"]["images"] > 24
    assert "copies found" in capsys.readouterr().err


def test_other_verbs_take_the_model_and_those_that_need_a_head_say_so(
    finished: Path, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = str(finished / "model.safetensors")
    assert "has no head, so it answers nothing; fine-tune it first" in _said(["evaluate", model, str(data)], capsys)
    image = next(photos(tmp_path / "one", 1).rglob("*.png"))
    assert "has no classes, only a representation" in _said(["predict", model, str(image)], capsys)
    assert main(["fewshot", model, str(data), "--shots", "1", "--no-cache"]) == 0
    assert main(["convert", model, str(tmp_path / "converted.safetensors")]) == 0
    words = ["finetune", str(data), "--from", model, "--steps", "2", "--batch", "4", "--threads", "1", "--quick"]
    assert main([*words, "--learning-rate", "0.01", "--out", str(tmp_path / "tuned")]) == 0
    assert vitrail.load(tmp_path / "tuned" / "model.safetensors").info.labels == CLASSES


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--objective", "mae", "--set", "objective.rate=0"], "rate is 0.0, but must be between 0 and 1"),
        (["--objective", "mae", "--set", "objective.rate=1"], "rate is 1.0, but must be between 0 and 1"),
        (["--set", "objective.rate=0"], "hides no patch|must be between 0 and 1"),
        (["--set", "objective.rate=1"], "hides every patch|must be between 0 and 1"),
        (["--set", "objective.rate=nan"], "rate"),
        (["--set", "objective.target=pixels"], "must be one of mean-colour, downsized, patch, not 'pixels'"),
        (["--objective", "mae", "--set", "model.positions=relative"], "belong to one full grid"),
        (["--objective", "mae", "--set", "model.pool=attention"], "learn nothing where patches are predicted"),
        (["--set", "model.pool=attention"], "learn nothing where patches are predicted"),
        (["--objective", "mae", "--model", "R50x1"], "has no patches"),
        (["--model", "R50+S/16"], "convolutions of a hybrid see hidden patches"),
        (["--objective", "mae", "--set", "objective.decoder.num_heads=5"], "the decoder does not fit"),
        (["--objective", "mae", "--set", "objective.decoder.depth=0"], "the decoder does not fit"),
        (["--objective", "dino", "--set", "objective.local_size=[64,64]"], "larger than the images"),
        (["--objective", "dino", "--batch", "1"], "`?--batch`? is 1; choose at least 2"),
        (["--objective", "moco", "--batch", "1"], "`?--batch`? is 1; choose at least 2"),
        (["--objective", "moco", "--micro-batch", "2"], "fewer negatives"),
        (["--objective", "clip"], "clip"),
        (["--probe", "linear"], "linear"),
    ],
)
def test_what_cannot_be_learned_is_one_sentence_before_the_first_step(
    words: list[str], sentence: str, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    said = _said(["pretrain", str(data), *SHORT, *words, "--out", str(out)], capsys)
    assert re.search(sentence, said), said
    assert not out.exists()


def test_one_image_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = photos(tmp_path / "photos", 1)
    said = _said(["pretrain", str(folder), "--steps", "2", "--out", str(tmp_path / "run")], capsys)
    assert "give two images or more" in said
    assert not (tmp_path / "run").exists()


def test_labels_that_are_asked_for_and_absent_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = photos(tmp_path / "photos")
    flat = tmp_path / "flat"
    flat.mkdir()
    for path in folder.rglob("*.png"):
        path.rename(flat / path.name)
    said = _said(["pretrain", str(flat), *QUICK, "--probe", "fewshot", "--out", str(tmp_path / "run")], capsys)
    assert "has no labels to measure with" in said
    assert "leave --probe out, or choose neighbours" in said


def test_images_that_are_smaller_than_a_patch_are_refused_or_enlarged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two pixels a side: the rule enlarges them to 8, of 8x8 patches of one pixel."""
    pixels = np.random.default_rng(0).integers(0, 256, (40, 2, 2, 3), dtype=np.uint8)
    np.savez(tmp_path / "tiny.npz", x=pixels, y=np.arange(40) % 2)
    out = tmp_path / "run"
    assert main(["pretrain", str(tmp_path / "tiny.npz"), *QUICK, "--objective", "mae", "--out", str(out)]) == 0
    capsys.readouterr()
    grey = ["--channels", "1", "--out", str(tmp_path / "grey")]
    said = _said(["pretrain", str(tmp_path / "tiny.npz"), *QUICK, "--objective", "mae", *grey], capsys)
    assert "a patch of one value has no deviation" in said
