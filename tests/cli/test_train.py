"""`vitrail train` as a person uses it: a run folder, going on, and one sentence for each thing that cannot be."""

import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import vitrail
from tests.training.making import CLASSES, made_archive, made_dataset
from vitrail.base.lines import read_rows
from vitrail.cli.main import main

pytestmark = pytest.mark.usefixtures("unchecked")
QUICK = ("--steps", "6", "--batch", "6", "--threads", "1", "--device", "cpu", "--set", "model.depth=1")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "made.npz"
    return made_archive(path)


@pytest.fixture(scope="module")
def finished(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "run"
    assert main(["train", str(data), *QUICK, "--out", str(out)]) == 0
    return out


def test_a_run_leaves_a_folder_with_everything(finished: Path) -> None:
    names = {path.name for path in finished.iterdir()}
    assert names >= {"config.json", "metrics.jsonl", "checkpoints", "model.safetensors", "report.html", "result.json"}
    model = vitrail.load(finished / "model.safetensors")
    assert model.info.labels == CLASSES
    assert model.info.preprocessing.image_size == model.config.image_size
    assert model.info.provenance["config"]["steps"] == 6
    page = (finished / "report.html").read_text()
    assert all(label in page for label in CLASSES)


def test_the_stored_config_makes_the_same_run_again(finished: Path, tmp_path: Path) -> None:
    again = tmp_path / "again"
    assert main(["train", "--config", str(finished / "config.json"), "--threads", "1", "--out", str(again)]) == 0
    assert (again / "metrics.jsonl").read_bytes() == (finished / "metrics.jsonl").read_bytes()
    ours, theirs = (vitrail.load(run / "model.safetensors").state_dict() for run in (finished, again))
    assert all(ours[name].equal(theirs[name]) for name in ours)


def test_the_same_command_again_says_what_it_said(
    finished: Path, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = (finished / "model.safetensors").stat().st_mtime_ns
    assert main(["train", str(data), *QUICK, "--out", str(finished), "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["steps"] == 6
    assert 0 <= result["accuracy"] <= 1
    assert result["split"] == "test"
    assert (finished / "model.safetensors").stat().st_mtime_ns == before


def test_an_interrupted_run_goes_on_by_the_same_command_or_by_resume(
    finished: Path, data: Path, tmp_path: Path
) -> None:
    for number, words in enumerate((["train", str(data), *QUICK, "--out"], ["train", "--threads", "1", "--resume"])):
        half = tmp_path / str(number)
        shutil.copytree(finished, half)
        for name in ("model.safetensors", "result.json", "report.html"):
            (half / name).unlink()
        for newest in sorted((half / "checkpoints").iterdir())[1:]:
            newest.unlink()
        assert main([*words, str(half)]) == 0
        assert read_rows(half / "metrics.jsonl") == read_rows(finished / "metrics.jsonl")
        ours, theirs = (vitrail.load(run / "model.safetensors").state_dict() for run in (finished, half))
        assert all(ours[name].equal(theirs[name]) for name in ours)


def test_going_on_keeps_how_the_work_was_done(data: Path, tmp_path: Path) -> None:
    whole, half, again = (tmp_path / name for name in ("whole", "half", "again"))
    words = ["train", str(data), *QUICK, "--micro-batch", "3", "--dropout", "0.2", "--keep-checkpoints", "9"]
    assert main([*words, "--out", str(whole)]) == 0
    shutil.copytree(whole, half)
    (half / "result.json").unlink()
    for newest in sorted((half / "checkpoints").iterdir())[2:]:
        newest.unlink()
    assert main(["train", "--resume", str(half)]) == 0
    assert main(["train", "--config", str(whole / "config.json"), "--out", str(again)]) == 0
    for run in (half, again):
        assert (run / "metrics.jsonl").read_bytes() == (whole / "metrics.jsonl").read_bytes()
        assert (run / "config.json").read_bytes() == (whole / "config.json").read_bytes()


def test_a_stored_config_can_have_another_seed_but_not_other_images(
    finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["train", "--config", str(finished / "config.json"), "--threads", "1", "--out", str(tmp_path / "run")]
    said = _said([*words, "--fraction", "0.5", "--channels", "3", "--micro-batch", "auto"], capsys)
    assert "--fraction, --channels, --micro-batch auto cannot change a stored run" in said
    assert main([*words, "--seed", "7", "--balanced"]) == 0
    found = json.loads((tmp_path / "run" / "config.json").read_text())
    assert (found["seed"], found["data"]["balanced"]) == (7, True)
    words = ["train", "--config", str(tmp_path / "run" / "config.json"), "--threads", "1", "--seed", "0"]
    assert main([*words, "--out", str(tmp_path / "other")]) == 0
    assert json.loads((tmp_path / "other" / "config.json").read_text())["seed"] == 0


def test_settings_of_the_data_by_hand_choose_the_data(data: Path, tmp_path: Path) -> None:
    words = ["train", str(data), *QUICK, "--batch", "4", "--out"]
    assert main([*words, str(tmp_path / "flag"), "--fraction", "0.5", "--seed", "3"]) == 0
    assert main([*words, str(tmp_path / "set"), "--set", "data.fraction=0.5", "seed=3"]) == 0
    one, other = (tmp_path / name for name in ("flag", "set"))
    assert json.loads((one / "config.json").read_text())["facts"]["images"] == 15
    assert (one / "config.json").read_bytes() == (other / "config.json").read_bytes()
    assert (one / "metrics.jsonl").read_bytes() == (other / "metrics.jsonl").read_bytes()


def test_images_without_a_class_are_left_out_of_what_is_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(0)
    lines = ["path,label,split"]
    for split, labelled in (("train", 12), ("val", 2), ("test", 0)):
        for number in range(12 if split == "train" else 4):
            name = f"{split}{number}.png"
            Image.fromarray(rng.integers(0, 256, (8, 8, 3), dtype=np.uint8)).save(tmp_path / name)
            lines.append(f"{name},{'ab'[number % 2] if number < labelled else ''},{split}")
    (tmp_path / "list.csv").write_text("\n".join(lines) + "\n")
    words = ["train", str(tmp_path / "list.csv"), "--steps", "2", "--batch", "4", "--threads", "1", "--json"]
    assert main([*words, "--out", str(tmp_path / "run")]) == 0
    captured = capsys.readouterr()
    assert "2 images of val have no class and are left out" in captured.err
    result = json.loads(captured.out)
    assert (result["split"], result["images"]) == ("val", 2)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--epochs", "2", "--batch", "0"], "batch is 0"),
        (["--epochs", "nan"], "--epochs is nan, but must be above 0"),
        (["--minutes", "-5"], "--minutes is -5.0, but must be above 0"),
        (["--fraction", "2"], "--fraction is 2.0, but must be above 0 and at most 1"),
        (["--set", "batch=abc"], "batch is 'abc'"),
        (["--channels", "0"], "channels"),
        (["--model", "R50x1", "--dropout", "0.1"], "model.dropout is not a setting"),
        (["--freeze", "nothing"], "no parameter is called 'nothing'"),
    ],
)
def test_a_number_that_cannot_be_is_one_sentence_and_leaves_no_folder(
    words: list[str], said: str, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said in _said(["train", str(data), "--device", "cpu", *words, "--out", str(tmp_path / "run")], capsys)
    assert not (tmp_path / "run").exists()


def _photos(folder: Path) -> Path:
    for label in "ab":
        (folder / label).mkdir(parents=True)
        for number in range(6):
            Image.new("RGB", (8, 8), (number, 0, 0)).save(folder / label / f"{number}.png")
    return folder


def test_a_broken_image_may_be_allowed_for_later(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, photos = tmp_path / "run", _photos(tmp_path / "photos")
    (photos / "a" / "0.png").write_bytes(b"no image")
    words = ["train", str(photos), "--steps", "4", "--batch", "4", "--threads", "1", "--out", str(out)]
    assert main(words) != 0
    assert "0.png" in capsys.readouterr().err
    assert main([*words, "--skip-broken", "1"]) == 0


def test_a_start_that_failed_does_not_keep_its_folder(data: Path, finished: Path, tmp_path: Path) -> None:
    config = json.loads((finished / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"seed": 9}))
    assert main(["train", str(data), *QUICK, "--out", str(tmp_path)]) == 0
    assert json.loads((tmp_path / "config.json").read_text())["seed"] == 0


def test_going_on_needs_the_very_images(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    photos, out = _photos(tmp_path / "photos"), tmp_path / "run"
    assert main(["train", str(photos), "--steps", "2", "--batch", "4", "--threads", "1", "--out", str(out)]) == 0
    capsys.readouterr()
    (photos / "a" / "0.png").rename(photos / "a" / "z.png")
    assert "other images, or other names" in _said(["train", "--resume", str(out)], capsys)
    (photos / "a").rename(photos / "c")
    assert "no class a any more; a new class c" in _said(["train", "--resume", str(out)], capsys)
    said = _said(["train", "--resume", str(out), "--out", "elsewhere", "--config", "none.json"], capsys)
    assert "--config, --out cannot change a stored run" in said


def test_nobody_who_reads_the_words_does_not_end_the_work(data: Path, tmp_path: Path) -> None:
    program = [sys.executable, "-m", "vitrail", "train", str(data), *QUICK, "--out", str(tmp_path / "run")]
    with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.wait(timeout=120) == 0
    assert (tmp_path / "run" / "model.safetensors").is_file()


def test_one_process_trains_unsharded(data: Path, tmp_path: Path) -> None:
    words = ["train", str(data), *QUICK, "--shard", "--optimizer", "adam", "--out", str(tmp_path / "run")]
    assert main(words) == 0


def test_another_time_is_another_run(finished: Path, data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["train", str(data), "--minutes", "5", "--batch", "6", "--threads", "1", "--device", "cpu"]
    assert "minutes is 5.0 here and null there" in _said([*words, "--out", str(finished)], capsys)


def test_minutes_become_steps_that_are_stored(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "timed"
    words = ["train", str(data), "--minutes", "0.02", "--batch", "6", "--threads", "1", "--device", "cpu"]
    assert main([*words, "--out", str(out)]) == 0
    config = json.loads((out / "config.json").read_text())
    steps = config["steps"]
    assert steps >= 1
    assert config["minutes"] == 0.02
    assert json.loads((out / "result.json").read_text())["steps"] == steps


def test_a_micro_batch_is_found(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "auto"
    assert main(["train", str(data), *QUICK, "--micro-batch", "auto", "--out", str(out)]) == 0
    assert json.loads((out / "config.json").read_text())["execution"]["micro_batch"] == 6


def _said(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    code = main(words)
    captured = capsys.readouterr()
    assert code == 2, captured
    assert captured.out == ""
    assert "Traceback" not in captured.err
    return captured.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--batch", "31"], "a batch of 31 is more than the 30 training images"),
        (["--steps", "3", "--epochs", "2"], "a run has one length"),
        (["--model", "B/17x"], "no model"),
        (["--recipe", "imagenet"], "there is no recipe 'imagenet'"),
        (["--recipe", "imagenet1k-B/16", "--image-size", "64"], "is for images of 224x224"),
        (["--set", "augmentation.flip"], "takes PATH=VALUE"),
        (["--set", "augmentation.flop=1"], "augmentation.flop is not a setting"),
        (["--micro-batch", "many"], "takes a number of images, or auto"),
        (["--freeze", "nothing.*"], "no parameter is called"),
        (["--warmup", "1000"], "do not fit into"),
        (["--device", "cuda"], "cuda"),
    ],
)
def test_what_cannot_be_is_one_sentence(
    words: list[str], said: str, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    lengths = {"--steps", "--epochs", "--minutes"}
    rest = ["--steps", "6"] if not lengths & set(words) else []
    batch = ["--batch", "6"] if "--batch" not in words else []
    assert said in _said(["train", str(data), *words, *rest, *batch, "--out", str(out)], capsys)
    assert not (out / "model.safetensors").exists()


def test_a_folder_with_another_run_lists_every_difference(
    finished: Path, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = _said(["train", str(data), *QUICK, "--seed", "5", "--out", str(finished)], capsys)
    assert "seed is 5 here and 0 there" in said
    said = _said(["train", "--resume", str(finished), "--learning-rate", "0.5"], capsys)
    assert "schedule.peak is 0.5 here" in said
    said = _said(["train", "--resume", str(finished), "--model", "B/16"], capsys)
    assert "--model cannot change a stored run" in said


def test_a_folder_that_is_no_run_is_left_alone(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "letter.txt").write_text("dear")
    assert "exists and is not a run" in _said(["train", str(data), *QUICK, "--out", str(tmp_path)], capsys)
    assert "is not a run that can be resumed" in _said(["train", "--resume", str(tmp_path)], capsys)
    assert "letter.txt cannot be read as JSON" in _said(["train", "--config", str(tmp_path / "letter.txt")], capsys)


def test_data_that_cannot_be_learned_from_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    images = made_dataset(8).pictures.images  # type: ignore[attr-defined]
    one = tmp_path / "one.npz"
    np.savez(one, x_train=images, y_train=np.zeros(8, int), x_test=images, y_test=np.zeros(8, int))
    assert "one class only" in _said(["train", str(one), "--out", str(tmp_path / "a")], capsys)
    gap = tmp_path / "gap.npz"
    targets = np.arange(8) % 2 * 2
    np.savez(gap, x_train=images, y_train=targets, x_test=images, y_test=targets, class_names=np.array(CLASSES))
    assert "has no image of bright" in _said(["train", str(gap), "--out", str(tmp_path / "b")], capsys)
    assert "nowhere" in _said(["train", str(tmp_path / "nowhere"), "--out", str(tmp_path / "c")], capsys)


def test_a_broken_image_ends_the_run_with_its_name_unless_it_may_be_skipped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "photos"
    for index, image in enumerate(made_dataset(24).pictures.images):  # type: ignore[attr-defined]
        path = folder / CLASSES[index % 3] / f"{index}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(path)
    broken = folder / CLASSES[0] / "3.png"
    broken.write_bytes(broken.read_bytes()[:60])
    words = ["train", str(folder), *QUICK, "--epochs", "3", "--val-fraction", "0.25", "--set", "batch=6"]
    words = [word for word in words if word not in ("--steps", "6", "--batch")]
    said = _said([*words, "--out", str(tmp_path / "a")], capsys)
    assert "3.png" in said
    assert "set --skip-broken to skip such" in said
    assert main([*words, "--skip-broken", "10%", "--out", str(tmp_path / "b")]) == 0
    (row,) = read_rows(tmp_path / "b" / "skipped.jsonl")
    assert row["name"].endswith("3.png")
    assert "1 broken images" in capsys.readouterr().out


SIGNALLED = ["--steps", "200", "--batch", "6", "--threads", "1", "--device", "cpu", "--checkpoint-every", "1000"]


@pytest.fixture(scope="module")
def straight(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was never stopped."""
    out = tmp_path_factory.mktemp("straight") / "run"
    assert main(["train", str(data), *SIGNALLED, "--out", str(out)]) == 0
    return out


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129)])
def test_a_signal_saves_and_the_same_command_resumes(
    number: int, code: int, data: Path, straight: Path, tmp_path: Path
) -> None:
    stopped, words = tmp_path / "stopped", ["train", str(data), *SIGNALLED, "--out", str(tmp_path / "stopped")]
    process = subprocess.Popen([sys.executable, "-m", "vitrail", *words], stderr=subprocess.PIPE, text=True)
    while len(read_rows(stopped / "metrics.jsonl")) < 3 and process.poll() is None:
        time.sleep(0.02)
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    assert process.returncode == code, said
    assert "the same command resumes from there" in said
    assert not (stopped / "model.safetensors").exists()
    assert main(words) == 0
    assert (stopped / "metrics.jsonl").read_bytes() == (straight / "metrics.jsonl").read_bytes()
    ours, theirs = (vitrail.load(run / "model.safetensors").state_dict() for run in (straight, stopped))
    assert all(ours[name].equal(theirs[name]) for name in ours)
