"""`vitrail finetune` as a person uses it."""

import json
from pathlib import Path

import numpy as np
import pytest

import vitrail
from tests.training.making import CLASSES, made_archive, made_dataset
from vitrail.base.lines import read_rows
from vitrail.cli.main import main
from vitrail.model.config import ViTConfig

pytestmark = pytest.mark.usefixtures("unchecked")
QUICK = ("--steps", "4", "--batch", "6", "--threads", "1", "--device", "cpu")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "made.npz"
    return made_archive(path)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "tiny.safetensors"
    config = ViTConfig(dim=8, depth=1, num_heads=2, mlp_dim=8, patch_size=(4, 4), image_size=(8, 8), num_classes=5)
    vitrail.save(vitrail.build(config, seed=0), path)
    return path


def _words(data: Path, model: Path, *more: str) -> list[str]:
    return ["finetune", str(data), "--from", str(model), *QUICK, *more]


def test_the_protocol_in_one_command(
    data: Path, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    words = _words(data, model, "--rates", "0.01", "0.1", "--runs", "2", "--image-size", "16", "--out", str(out))
    assert main([*words, "--json"]) == 0
    captured = capsys.readouterr()
    result = json.loads(captured.out)
    assert [row["rate"] for row in result["sweep"]] == [0.01, 0.1]
    assert len(result["accuracies"]) == 2
    assert "2 rates to try and 2 to train, 4 steps" in captured.err
    tuned = vitrail.load(out / "model.safetensors")
    assert tuned.info.labels == CLASSES
    assert tuned.config.image_size == tuned.info.preprocessing.image_size == (16, 16)
    assert tuned.info.provenance["parent"] == vitrail.load(model).info.digest
    assert main(words) == 0  # again: nothing is left to do
    said = capsys.readouterr().out
    assert "rate 0.01" in said
    assert "2 seeds" in said
    assert main(["finetune", "--resume", str(out), "--threads", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == result
    assert main(["finetune", "--resume", str(out), "--runs", "3", "--fraction", "0.9"]) == 2
    assert "--fraction, --runs cannot change a stored run" in capsys.readouterr().err


def test_the_held_out_images_are_looked_at_once(data: Path, model: Path, tmp_path: Path) -> None:
    words = _words(data, model, "--rates", "0.01", "0.1", "--micro-batch", "auto", "--out", str(tmp_path / "run"))
    assert main(words) == 0
    for run in (tmp_path / "run", *(tmp_path / "run" / "sweep").iterdir()):
        looks = [row["step"] for row in read_rows(run / "metrics.jsonl") if "val_accuracy" in row]
        assert looks == [4]
        assert json.loads((run / "config.json").read_text())["execution"]["micro_batch"] == 6


def test_a_rate_that_diverges_is_out(
    data: Path, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = _words(data, model, "--rates", "0.01", "1e30", "--out", str(tmp_path / "run"), "--set")
    words += ["optimizer.clip_norm=null"]
    assert main([*words, "--json"]) == 0
    bad = tmp_path / "run" / "sweep" / "rate-1e+30"
    record = json.loads((bad / "diverged.json").read_text())
    assert "not finite 3 times in a row" in record["reason"]
    kept = {path: path.stat().st_mtime_ns for path in bad.iterdir()}
    result = json.loads(capsys.readouterr().out)
    assert [row["rate"] for row in result["sweep"]] == [0.01]
    assert (result["rate"], result["diverged"]) == (0.01, [1e30])
    assert main(words) == 0
    assert f"diverged at step {record['step']}" in capsys.readouterr().out
    assert {path: path.stat().st_mtime_ns for path in bad.iterdir()} == kept  # it is a result: not tried again


def test_the_images_of_a_sweep_follow_from_settings_by_hand(data: Path, model: Path, tmp_path: Path) -> None:
    arrays = np.load(data)
    np.savez(tmp_path / "pile.npz", images=arrays["x_train"], labels=arrays["y_train"])
    words = _words(tmp_path / "pile.npz", model, "--rates", "0.01", "0.1", "--out", str(tmp_path / "run"))
    assert main([*words, "--set", "data.split_seed=7", "data.val_fraction=0.3"]) == 0
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    assert (config["data"]["split_seed"], config["data"]["val_fraction"]) == (7, 0.3)
    assert config["facts"]["images"] == 21
    tried = json.loads((tmp_path / "run" / "sweep" / "rate-0.01" / "config.json").read_text())
    assert tried["facts"]["images"] + 3 <= 21


def test_quick_and_frozen_train_the_head_alone_at_one_rate(data: Path, model: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    assert main(_words(data, model, "--quick", "--frozen", "--out", str(out))) == 0
    assert not (out / "sweep").exists()
    (row,) = json.loads((out / "series.json").read_text())["rows"]
    assert row["varied"] == {"rate": pytest.approx(0.003), "seed": 0}
    before, after = vitrail.load(model).state_dict(), vitrail.load(out / "model.safetensors").state_dict()
    moved = {name for name in after if name not in before or not after[name].equal(before[name])}
    assert moved == {"head.linear.weight", "head.linear.bias"}


def test_a_recipe_of_the_paper_runs_small(data: Path, model: Path, tmp_path: Path) -> None:
    words = ["finetune", str(data), "--from", str(model), "--recipe", "finetune-flowers-smoke", "--threads", "1"]
    assert main([*words, "--device", "cpu", "--out", str(tmp_path / "run")]) == 0
    assert json.loads((tmp_path / "run" / "config.json").read_text())["batch"] == 8


def test_minutes_are_for_everything_together(data: Path, model: Path, tmp_path: Path) -> None:
    words = ["finetune", str(data), "--from", str(model), "--minutes", "0.03", "--batch", "6", "--threads", "1"]
    assert main([*words, "--device", "cpu", "--rates", "0.01", "0.1", "--out", str(tmp_path / "run")]) == 0
    plan = json.loads((tmp_path / "run" / "finetune.json").read_text())
    assert plan["base"]["steps"] >= 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--rates", "0.1", "--quick"], "leave one out"),
        (["--frozen", "--freeze", "encoder.*"], "leave one out"),
        (["--rates", "0.1", "0.1"], "all different"),
        (["--rates", "0.1", "1e308"], "from 1e-30 to 1e+30"),
        (["--rates", "0.1", "1e-320"], "from 1e-30 to 1e+30"),
        (["--runs", "0"], "--runs is 0, but must be a whole number of at least 1"),
        (["--runs", "4294967296"], "--runs is 4294967296, but must be a whole number of at most 1,000"),
        (["--recipe", "finetune-pet"], "there is no recipe 'finetune-pet'"),
        (["--image-size", "10"], "patch"),
        (["--dev-fraction", "1.5"], "--dev-fraction is 1.5, but must be between 0 and 1"),
        (["--epochs", "2"], "a run has one length"),
        (["--patience", "2"], "evaluates once, at the end"),
        (["--set", "evaluate_every=1"], "evaluates once, at the end"),
        (["--threads", "0"], "--threads is 0, but must be a whole number of at least 1"),
        (["--set", "schedule.peak=0.5"], "give --rates, or one --learning-rate"),
        (["--freeze", "a*"], "no parameter is called 'a*'"),
        (["--batch", "29", "--rates", "0.1", "0.2"], "a batch of 29 is more than the"),
    ],
)
def test_what_cannot_be_is_one_sentence(
    words: list[str], said: str, data: Path, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(_words(data, model, *words, "--out", str(tmp_path / "run"))) == 2
    captured = capsys.readouterr()
    assert said in captured.err
    assert captured.out == ""
    assert not (tmp_path / "run").exists()


def test_missing_words_and_files_are_one_sentence(
    data: Path, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for words, said in (
        (["finetune", "--from", str(model)], "DATA is missing"),
        (["finetune", str(data), "--from", str(tmp_path / "none")], "none"),
        (["finetune", str(data), "--from", str(data)], "made.npz"),
        (["finetune", "--resume", str(tmp_path)], "is not fine-tuning that can be resumed"),
    ):
        assert main(words) == 2
        assert said in capsys.readouterr().err


def test_a_channel_count_that_cannot_be_made_is_one_sentence(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    images = np.zeros((12, 8, 8, 5), dtype=np.uint8)
    targets = np.arange(12) % 2
    np.savez(tmp_path / "five.npz", x_train=images, y_train=targets, x_test=images, y_test=targets)
    assert main(_words(tmp_path / "five.npz", model, "--quick", "--out", str(tmp_path / "run"))) == 2
    assert "5 channels" in capsys.readouterr().err


def test_a_stored_run_needs_the_same_data(
    data: Path, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = tmp_path / "made.npz"
    copy.write_bytes(data.read_bytes())
    assert main(_words(copy, model, "--quick", "--out", str(tmp_path / "run"))) == 0
    capsys.readouterr()
    fewer = made_dataset(24).pictures.images  # type: ignore[attr-defined]
    np.savez(copy, x_train=fewer, y_train=np.arange(24) % 3, x_test=fewer, y_test=np.arange(24) % 3)
    assert main(["finetune", "--resume", str(tmp_path / "run")]) == 2
    assert "30 training images then, 24 now; no class" in capsys.readouterr().err
