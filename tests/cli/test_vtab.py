"""`vitrail vtab` on small made tasks."""

import json
import re
import shutil
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

import vitrail
from tests.studies.making import made_task
from tests.tiny import perturbed, vit_config
from vitrail.cli.main import main
from vitrail.cli.vtab import Arguments
from vitrail.recipes.results import TABLE_9
from vitrail.runs import series
from vitrail.runs.folder import SERIES_LOCK, RunFolder, claim_folder
from vitrail.runs.result import Result, RunCost
from vitrail.studies.vtab_tasks import TASKS
from vitrail.training.endings import DivergedError

pytestmark = pytest.mark.usefixtures("unchecked")
SMALL = ("--image-size", "8", "--steps", "12", "--batch", "6", "--threads", "1", "--device", "cpu")
FOLDERS = ("dtd", "cifar100", "eurosat", "kitti")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("vtab-1k")
    for seed, name in enumerate(FOLDERS):
        made_task(root / name, seed)
    return root


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    config = vit_config(image_size=(8, 8), patch_size=(4, 4), num_classes=5, representation_size=16)
    return vitrail.save(perturbed(config), tmp_path_factory.mktemp("model") / "model.safetensors")


@pytest.fixture(scope="module")
def done(root: Path, model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("out")
    assert main(["vtab", str(model), str(root), *SMALL, "--out", str(out)]) == 0
    return out


def told(words: list[str], capsys: pytest.CaptureFixture[str]) -> dict:
    capsys.readouterr()
    assert main(["vtab", *words, *SMALL, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_every_task_is_a_run_of_its_own_on_its_own_classes(done: Path) -> None:
    assert {path.name for path in done.iterdir()} == {"dtd", "cifar", "eurosat", "kitti", "series.json"}
    config = json.loads((done / "kitti" / "config.json").read_text())
    assert (config["steps"], config["batch"], config["optimizer"]["name"]) == (12, 6, "sgd")
    tuned = vitrail.load(done / "kitti" / "model.safetensors")
    assert tuned.info.labels == ("0", "1", "2")
    assert tuned.config.representation_size is None


def test_finished_tasks_are_kept_and_told_again(
    done: Path, root: Path, model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {path: path.stat().st_mtime_ns for path in done.rglob("*") if path.is_file()}
    found = told([str(model), str(root), "--out", str(done)], capsys)
    assert {path: path.stat().st_mtime_ns for path in done.rglob("*") if path.is_file()} == files
    accuracies = {row["task"]: row["accuracy"] for row in found["tasks"]}
    assert list(accuracies) == ["cifar", "dtd", "eurosat", "kitti"]  # the order of Table 9
    for task, accuracy in accuracies.items():
        result = RunFolder(path=done / task).read_result()
        assert (result.accuracy, result.images, result.split) == (accuracy, 9, "test")
    assert found["mean"] == pytest.approx(np.mean(list(accuracies.values())))
    assert found["groups"]["natural"] == pytest.approx((accuracies["cifar"] + accuracies["dtd"]) / 2)
    assert (found["mean_over"], found["complete"]) == (4, False)
    assert found["missing"] == [task for task in TASKS if task not in accuracies]
    assert found["tasks"][1]["paper"] == {name: column["dtd"] for name, column in TABLE_9.items()}


def test_a_task_that_was_stopped_goes_on_and_ends_the_same(
    done: Path, root: Path, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    shutil.copytree(done, out)
    for name in ("model.safetensors", "result.json", "report.html"):
        (out / "kitti" / name).unlink()
    for newest in sorted((out / "kitti" / "checkpoints").iterdir())[1:]:
        newest.unlink()
    found = told([str(model), str(root), "--out", str(out)], capsys)
    assert found["tasks"] == [
        row | {"run": row["run"].replace(str(done), str(out))}
        for row in told([str(model), str(root), "--out", str(done)], capsys)["tasks"]
    ]
    ours, theirs = (vitrail.load(runs / "kitti" / "model.safetensors").state_dict() for runs in (done, out))
    assert all(ours[name].equal(theirs[name]) for name in ours)


def test_the_table_has_groups_means_the_papers_columns_and_what_is_missing(
    done: Path, root: Path, model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert main(["vtab", str(model), str(root), *SMALL, "--out", str(done)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split() == ["task", "images", "accuracy", "H/14", "JFT", "L/16", "JFT", "L/16", "I21k"]
    first = [line.split("  ")[0] for line in lines[2:]]
    assert first[:8] == [
        "cifar",
        "dtd",
        "= natural, mean of 2 of 7",
        "eurosat",
        "= specialized, mean of 1 of 4",
        "kitti",
        "= structured, mean of 1 of 8",
        "= all, mean of 4 of 19",
    ]
    paper = [(85.5 + 75.2 + 96.7 + 84.5) / 4, (81.9 + 74.3 + 96.5 + 82.2) / 4, (84.1 + 74.1 + 95.6 + 79.9) / 4]
    assert lines[9].split()[-3:] == [f"{mean:.1f}" for mean in paper]
    notes = " ".join(lines[10:])
    assert "not the paper's score" in notes
    assert "Not there: caltech101, oxford_flowers102" in notes


def test_a_task_learns(done: Path) -> None:
    accuracies = [RunFolder(path=path).read_result().accuracy for path in done.iterdir() if path.is_dir()]
    assert np.mean(accuracies) > 0.5  # of three classes


def test_some_tasks_can_be_asked_for(
    root: Path, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [str(model), str(root), "--out", str(tmp_path), "--tasks", "KITTI"]
    assert [row["task"] for row in told(words, capsys)["tasks"]] == ["kitti"]
    assert {path.name for path in tmp_path.iterdir()} == {"kitti", "series.json"}


def test_all_19_tasks_make_the_score(root: Path, model: Path, done: Path, tmp_path: Path, capsys) -> None:
    """The runs of one task stand for all of them: only the table is looked at."""
    everything, out = tmp_path / "root", tmp_path / "out"
    for task in TASKS:
        (everything / task).parent.mkdir(exist_ok=True)
        (everything / task).symlink_to(root / "dtd")
        target = out / task
        target.mkdir(parents=True)
        config = json.loads((done / "dtd" / "config.json").read_text())
        config["data"]["where"] = str(everything / task)
        (target / "config.json").write_text(json.dumps(config))
        (target / "result.json").write_bytes((done / "dtd" / "result.json").read_bytes())
        (target / "model.safetensors").symlink_to(done / "dtd" / "model.safetensors")
    found = told([str(model), str(everything), "--out", str(out)], capsys)
    assert (found["mean_over"], found["complete"], found["missing"]) == (19, True, [])
    assert main(["vtab", str(model), str(everything), *SMALL, "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    assert "= all, mean of 19 " in printed
    assert "not the paper's score" not in printed
    assert printed.strip().splitlines()[-1].split()[-3:] == ["77.6", "76.3", "72.7"]


def test_a_broken_list_is_named_with_its_line_before_any_task_is_run(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken, out = tmp_path / "root", tmp_path / "out"
    made_task(broken / "dtd", 0)
    made_task(broken / "svhn", 1)
    lists = broken / "svhn" / "test.txt"
    lists.write_text(lists.read_text() + "images/test/000000.png\n")
    assert main(["vtab", str(model), str(broken), *SMALL, "--out", str(out)]) == 2
    captured = capsys.readouterr()
    assert captured.err.strip().splitlines() == [
        f"vitrail: line 10 of {lists} is not `PATH LABEL` with a label from 0 on: 'images/test/000000.png'."
    ]
    assert not out.exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--tasks", "imagenet"], "'imagenet' is not a task of VTAB-1k"),
        (["--tasks", "svhn"], "has no folder of the task svhn"),
        (["--batch", "13"], "a batch of 13 is more than the 12 training images"),
        (["--image-size", "10"], "patch"),
        (["--steps", "0"], "steps is 0"),
        (["--learning-rate", "0"], "the learning rate"),
    ],
)
def test_what_cannot_be_is_one_sentence(
    words: list[str], said: str, root: Path, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small = [word for pair in zip(SMALL[::2], SMALL[1::2], strict=True) if pair[0] not in words for word in pair]
    assert main(["vtab", str(model), str(root), *small, *words, "--out", str(tmp_path / "out")]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert said in captured.err
    assert len(captured.err.strip().splitlines()) == 1
    assert not (tmp_path / "out").exists()


def test_a_folder_with_other_settings_lists_the_differences(
    done: Path, root: Path, model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["vtab", str(model), str(root), *SMALL, "--seed", "4", "--out", str(done)]) == 2
    said = capsys.readouterr().err
    assert "seed is 4 here and 0 there" in said
    advised = set(re.findall(r"--[a-z-]+", said))
    assert advised == {"--out"}  # every flag that is advised is one of the verb's
    assert {f"--{field.name.replace('_', '-')}" for field in fields(Arguments)} >= advised


def test_a_task_that_diverges_is_a_row_and_in_no_mean(
    root: Path, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def conduct(run, *_):
        if run.folder.path.name == "dtd":
            run.folder.path.mkdir(parents=True)
            raise DivergedError("the loss was not finite", step=7)
        cost = RunCost(parameters=1, gmacs_per_image=0.0, seconds=0.0)
        figures = {"accuracy": 0.75, "loss": 0.5}
        return Result(weights="last", steps=12, epochs=1.0, split="test", images=9, figures=figures, cost=cost)

    monkeypatch.setattr(series, "conduct", conduct)
    words = [str(model), str(root), "--out", str(tmp_path), "--tasks", "dtd", "kitti"]
    found = told(words, capsys)
    assert [(row["task"], row["accuracy"], row["diverged"]) for row in found["tasks"]] == [
        ("dtd", None, "the loss was not finite"),
        ("kitti", 0.75, None),
    ]
    assert (found["mean"], found["mean_over"], found["groups"]) == (0.75, 1, {"structured": 0.75})
    assert main(["vtab", *words, *SMALL]) == 0
    printed = capsys.readouterr().out
    assert "dtd diverged at step 7" in printed
    assert "= all, mean of 1 of 19" in printed


def test_a_second_process_on_the_same_tasks_is_refused(
    root: Path, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with claim_folder(tmp_path, SERIES_LOCK):
        assert main(["vtab", str(model), str(root), *SMALL, "--out", str(tmp_path)]) == 2
    assert "another process is working on" in capsys.readouterr().err
