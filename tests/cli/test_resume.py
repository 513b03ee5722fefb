"""What `vitrail train` does in a folder that has a run already: resume, refuse, restart, extend."""

import fcntl
import json
import os
import pty
import shutil
import subprocess
import sys
import termios
import time
from contextlib import suppress
from pathlib import Path

import pytest
from PIL import Image

import vitrail
from tests.cli.test_train import QUICK, _said
from tests.training.making import CLASSES, made_dataset
from vitrail.base.lines import read_rows
from vitrail.cli.main import main

pytestmark = pytest.mark.usefixtures("unchecked")


def made_photos(folder: Path) -> Path:
    for index, image in enumerate(made_dataset(24).pictures.images):  # type: ignore[attr-defined]
        path = folder / CLASSES[index % 3] / f"{index:02}.bmp"  # all of one size, whatever they show
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(path)
    return folder


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with photos/ and a finished run/ that learned from them, by a relative path."""
    place = tmp_path_factory.mktemp("place")
    made_photos(place / "photos")
    before = Path.cwd()
    os.chdir(place)
    try:
        assert main(["train", "photos", *QUICK, "--keep-checkpoints", "9", "--out", "run"]) == 0
    finally:
        os.chdir(before)
    return place


@pytest.fixture
def here(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same with a run that was stopped after step 3, in a folder where tests may change everything."""
    shutil.copytree(place, tmp_path, dirs_exist_ok=True, copy_function=shutil.copy2)
    monkeypatch.chdir(tmp_path)
    for name in ("model.safetensors", "result.json", "report.html"):
        (tmp_path / "run" / name).unlink()
    for newer in sorted((tmp_path / "run" / "checkpoints").iterdir())[3:]:
        newer.unlink()
    settings = json.loads(Path("run/config.json").read_text())
    settings["data"]["where"] = str(tmp_path / "photos")
    Path("run/config.json").write_text(json.dumps(settings))
    return tmp_path


def _same_weights(one: Path, other: Path) -> bool:
    ours, theirs = (vitrail.load(run / "model.safetensors").state_dict() for run in (one, other))
    return all(ours[name].equal(theirs[name]) for name in ours)


def _files(folder: Path) -> dict[Path, bytes]:
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_edited_settings_are_refused_with_what_differs_and_nothing_is_lost(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = here / "run" / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"steps": 12}, indent=2) + "\n")
    before = _files(here)
    said = _said(["train", "--resume", "run", "--threads", "1"], capsys)
    assert "steps is 12 here and 6 there" in said
    assert "--extend" in said
    after = _files(here)
    assert before.keys() == after.keys()
    assert [path for path in before if before[path] != after[path]] in ([], [Path("run/config.json")])
    assert json.loads(after[Path("run/config.json")])["steps"] == 12


def test_restart_begins_again_and_keeps_what_was_there(
    here: Path, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for path in (here / "run" / "checkpoints").iterdir():
        path.write_bytes(b"gone")
    assert "--restart" in _said(["train", "--resume", "run", "--threads", "1"], capsys)
    before = _files(here / "run")
    assert main(["train", "photos", *QUICK, "--keep-checkpoints", "9", "--out", "run", "--restart"]) == 0
    assert "it is now run-before-1" in capsys.readouterr().err
    assert before == _files(here / "run-before-1")
    assert _same_weights(here / "run", place / "run")


def test_a_run_is_resumed_from_another_folder_although_its_data_was_given_relatively(
    here: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = json.loads((place / "run" / "config.json").read_text())["data"]["where"]
    assert stored == str(place / "photos")  # `here` is a copy, which writes its own place into config.json
    (here / "elsewhere" / "photos").mkdir(parents=True)
    monkeypatch.chdir(here / "elsewhere")
    assert main(["train", "--resume", str(here / "run"), "--threads", "1"]) == 0
    assert _same_weights(here / "run", place / "run")


def test_a_model_file_does_not_tell_where_its_data_lay(place: Path) -> None:
    provenance = json.dumps(dict(vitrail.load(place / "run" / "model.safetensors").info.provenance))
    assert "photos" in provenance
    assert str(place) not in provenance


def test_data_that_has_moved_is_found_where_it_is_now(here: Path, place: Path) -> None:
    shutil.move("photos", "moved")
    assert main(["train", "moved", "--resume", "run", "--threads", "1"]) == 0
    assert _same_weights(here / "run", place / "run")


@pytest.mark.parametrize("words", [["--resume", "run", "--threads", "1"], ["photos", *QUICK, "--out", "run"]])
@pytest.mark.parametrize("change", ["exchanged", "repainted", "touched"])
def test_changed_images_of_the_same_names_are_noticed(
    words: list[str], change: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, other = here / "photos" / CLASSES[0] / "00.bmp", here / "photos" / CLASSES[0] / "03.bmp"
    if change == "exchanged":
        one.rename("middle")
        other.rename(one)
        Path("middle").rename(other)
    elif change == "repainted":
        one.write_bytes(one.read_bytes()[:-1] + b"\0")
    else:
        os.utime(one, ns=(1, 1))
    said = _said(["train", *words], capsys)
    assert "files of other sizes or times" in said
    assert "resume with --same-data" in said
    assert main(["train", *words, "--same-data"]) == 0


def test_a_longer_training_is_a_new_run_that_begins_with_the_state_of_the_old(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = _files(here / "run")
    words = ["train", "--extend", "run", "--threads", "1"]
    assert "give one of --steps, --epochs and --minutes" in _said(words, capsys)
    assert main([*words, "--steps", "4"]) == 0
    longer = Path("run-extended")
    assert json.loads((longer / "result.json").read_text())["steps"] == 3 + 4
    assert {row["step"] for row in read_rows(longer / "metrics.jsonl")} <= {4, 5, 6, 7}
    assert before == _files(here / "run")
    model = (longer / "model.safetensors").stat().st_mtime_ns
    assert main([*words, "--steps", "4"]) == 0  # it is finished
    assert (longer / "model.safetensors").stat().st_mtime_ns == model
    assert main([*words, "--epochs", "1", "--out", "epoch"]) == 0
    images = json.loads(Path("run/config.json").read_text())["facts"]["images"]
    assert json.loads(Path("epoch/result.json").read_text())["steps"] == 3 + round(images / 6)
    run = vitrail.train(extend="epoch", steps=2, out="python", quiet=True, threads=1)
    assert run.result.steps == 3 + round(images / 6) + 2
    capsys.readouterr()
    assert "leave --optimizer out" in _said([*words, "--steps", "4", "--optimizer", "sgd"], capsys)
    assert "--model cannot change a stored run" in _said([*words, "--steps", "4", "--model", "S/16"], capsys)


@pytest.mark.parametrize(
    "words",
    [
        ["--set", "optimizer.clip_norm=NaN"],
        ["--weight-decay", "inf"],
        ["--learning-rate", "nan"],
        ["--learning-rate", "1e308"],
        ["--learning-rate", "1e-320"],
        ["--set", "optimizer.name=muon", "optimizer.muon_rate=1e300"],
        ["--minutes", "1e18"],
        ["--minutes", "nan"],
        ["--image-size", "100000"],
        ["--set", "model.dim=1000000"],
        ["--set", "model.depth=1000000"],
        ["--channels", "1000000"],
        ["--set", "augmentation.layers=1000000"],
        ["--threads", "1000000"],
        ["--steps", "9" * 400],
        ["--epochs", "1e300"],
        ["--set", "model.dim=65536", "model.mlp_dim=262144", "model.num_heads=16", "model.depth=1000"],
    ],
)
def test_numbers_that_no_run_can_have_are_one_sentence_at_once(
    words: list[str], here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lengths = {"--steps", "--epochs", "--minutes"}
    rest = [] if lengths & set(words) else ["--steps", "6"]
    said = _said(["train", "photos", *words, *rest, "--batch", "6", "--out", "new"], capsys)
    assert said.count("\n") == 1
    assert len(said) < 400
    assert not (here / "new").exists()


def test_a_run_that_diverges_at_its_end_fails_and_leaves_no_model(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["train", "photos", *QUICK, "--optimizer", "sgd", "--set", "optimizer.clip_norm=none", "--warmup", "0"]
    assert main([*words, "--learning-rate", "1e30", "--out", "new"]) == 1
    said = capsys.readouterr()
    assert "--learning-rate" in said.err
    assert "step" in said.err
    assert not (here / "new" / "model.safetensors").exists()
    assert "NaN" not in "".join(path.read_text() for path in (here / "new").glob("*.json*"))


@pytest.mark.slow
def test_a_terminal_that_is_closed_saves_the_run(here: Path) -> None:
    words = [sys.executable, "-m", "vitrail", "train", "photos", "--steps", "4000", "--batch", "6", "--threads", "1"]
    words += ["--device", "cpu", "--checkpoint-every", "100000", "--set", "log_every=1", "--out", "new"]
    terminal, inside = pty.openpty()
    process = subprocess.Popen(
        words,
        stdin=inside,
        stdout=inside,
        stderr=inside,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    os.close(inside)
    while len(read_rows(here / "new" / "metrics.jsonl")) < 3 and process.poll() is None:
        with suppress(BlockingIOError):
            os.set_blocking(terminal, False)
            os.read(terminal, 65536)
        time.sleep(0.05)
    os.close(terminal)
    assert process.wait(timeout=30) == 129
    assert list((here / "new" / "checkpoints").glob("step-*.safetensors"))
    assert not list((here / "new").glob(".*"))
