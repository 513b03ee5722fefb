"""The sweep on a dev split, the runs on everything, and going on in the middle of it."""

import statistics
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import vitrail
from tests.training.making import CLASSES, StopAfter, made_archive, made_config, made_dataset
from vitrail.base.errors import ConfigError, InputError
from vitrail.base.lines import read_rows
from vitrail.base.ranks import Ranks
from vitrail.runs.config import RunConfig
from vitrail.runs.data import open_run_data
from vitrail.runs.data_config import DataConfig
from vitrail.runs.finetune import Finetuned, Finetuning, best_rate, spread
from vitrail.runs.finetune_plan import FinetunePlan, read_plan
from vitrail.runs.folder import SERIES_LOCK, RunFolder
from vitrail.runs.series import Row, Table
from vitrail.runs.start import open_source
from vitrail.training.endings import DivergedError, StoppedError
from vitrail.training.signals import StopSignal


class _Silent:
    def start(self, step: int) -> None: ...

    def note(self, sentence: str) -> None: ...

    def __call__(self, step: int, values: dict[str, float]) -> None: ...


@contextmanager
def _silent(_: RunConfig, __: str) -> Iterator[_Silent]:
    yield _Silent()


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "made.npz"
    return made_archive(path, 42)


@pytest.fixture(scope="module")
def plan(data: Path, tmp_path_factory: pytest.TempPathFactory) -> FinetunePlan:
    made = made_config(steps=6, batch=6)
    model = vitrail.build(replace(made.model, num_classes=7), seed=4)
    path = tmp_path_factory.mktemp("model") / "model.safetensors"
    vitrail.save(model, path)
    source = open_source(str(path))
    where = DataConfig(where=str(data), role="transfer", dev_fraction=0.15, split_seed=3)
    base = replace(made, start=source.start, data=where, averaging=None)
    return FinetunePlan(base=base, rates=(0.001, 0.01), runs=2)


def _work(plan: FinetunePlan, folder: Path) -> Finetuning:
    data = open_run_data(plan.base.data, seed=plan.base.seed)
    return Finetuning(plan=plan, data=data, folder=RunFolder(path=folder), ranks=Ranks())


def _carry_out(plan: FinetunePlan, folder: Path, stop: StopSignal | None = None) -> Finetuned:
    return _work(plan, folder).carry_out(_silent, stop or StopSignal())


@pytest.fixture(scope="module")
def straight(plan: FinetunePlan, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "straight"
    _carry_out(plan, folder)
    return folder


def test_rates_are_tried_without_the_dev_images_and_the_best_trains_on_all(plan: FinetunePlan, straight: Path) -> None:
    result = _carry_out(plan, straight).as_dict()
    tried = [RunFolder(path=straight).sweep(rate) for rate in plan.rates]
    assert [folder.read_config().facts.images for folder in tried] == [36, 36]  # 2 of the 14 images of each class: 15%
    assert {folder.read_config().data.role for folder in tried} == {"dev"}
    assert [row["images"] for row in result["sweep"]] == [6, 6]
    assert [row["accuracy"] for row in result["sweep"]] == [folder.read_result().accuracy for folder in tried]
    final = RunFolder(path=straight).read_config()
    assert (final.facts.images, final.data.role, final.schedule.peak) == (42, "transfer", result["rate"])
    assert result["split"] == "test"
    assert result["images"] == 12


def test_further_seeds_see_the_same_data_and_are_summed_up(plan: FinetunePlan, straight: Path) -> None:
    result = _carry_out(plan, straight).as_dict()
    other = RunFolder(path=straight).seed(plan.base.seed + 1)
    assert other.read_config() == replace(RunFolder(path=straight).read_config(), seed=plan.base.seed + 1)
    accuracies = [result["accuracy"], other.read_result().accuracy]
    assert result["accuracies"] == accuracies
    assert result["accuracy_mean"] == pytest.approx(statistics.mean(accuracies))
    assert result["accuracy_std"] == pytest.approx(statistics.stdev(accuracies))


def test_the_report_shows_the_sweep_and_the_other_seeds(straight: Path) -> None:
    page = (straight / "report.html").read_text()
    assert "Dev accuracy of each learning rate" in page
    assert "Other seeds" in page


@pytest.mark.parametrize("looks", [3, 9, 14, 21])
def test_stopping_anywhere_and_going_on_gives_the_same_bits(
    looks: int, plan: FinetunePlan, straight: Path, tmp_path: Path
) -> None:
    with pytest.raises(StoppedError):
        _carry_out(plan, tmp_path / "run", StopAfter(looks))
    assert not (tmp_path / "run" / "model.safetensors").exists()
    _carry_out(plan, tmp_path / "run")
    assert (tmp_path / "run" / "series.json").read_bytes() == (straight / "series.json").read_bytes()
    assert read_rows(tmp_path / "run" / "metrics.jsonl") == read_rows(straight / "metrics.jsonl")
    ours, theirs = (vitrail.load(run / "model.safetensors").state_dict() for run in (straight, tmp_path / "run"))
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)


def test_a_second_process_on_the_same_plan_is_refused(plan: FinetunePlan, tmp_path: Path) -> None:
    work = _work(plan, tmp_path / "run")
    assert work.enter()
    assert not work.enter()  # it is not new any more
    with work.folder.claim(SERIES_LOCK), pytest.raises(InputError, match="another process is working on"):
        work.carry_out(_silent, StopSignal())
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["finetune.json"]


def test_finished_runs_are_not_run_again(plan: FinetunePlan, straight: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in straight.rglob("*.*") if path.is_file()}
    again = _carry_out(plan, straight, StopAfter(1))
    assert again.result == RunFolder(path=straight).read_result()
    assert before == {path: path.stat().st_mtime_ns for path in straight.rglob("*.*") if path.is_file()}


def test_one_rate_needs_no_trial(plan: FinetunePlan, tmp_path: Path) -> None:
    done = _carry_out(replace(plan, rates=(0.01,), runs=1), tmp_path / "run")
    assert done.sweep.rows == ()
    assert done.rate == 0.01
    assert not (tmp_path / "run" / "sweep").exists()


def test_a_folder_with_another_plan_lists_every_difference(plan: FinetunePlan, straight: Path) -> None:
    other = replace(plan, rates=(0.5,), base=replace(plan.base, batch=12))
    with pytest.raises(InputError, match=r"batch is 12 here and 6 there; rates is \[0\.5\] here"):
        _work(other, straight).enter()
    assert read_plan(RunFolder(path=straight)) == plan


def test_data_with_val_and_test_is_swept_on_val_and_trained_on_both(tmp_path: Path) -> None:
    pieces = {"train": made_dataset(15), "val": made_dataset(9, seed=1), "test": made_dataset(6, seed=2)}
    arrays = {f"x_{name}": piece.pictures.images for name, piece in pieces.items()}  # type: ignore[attr-defined]
    targets = {f"y_{name}": piece.targets for name, piece in pieces.items()}
    np.savez(tmp_path / "three.npz", **arrays, **targets)
    where = DataConfig(where=str(tmp_path / "three.npz"), role="dev")
    tried = open_run_data(where, seed=0)
    assert tried.evaluation is not None
    assert (len(tried.train), len(tried.evaluation), tried.evaluation.split) == (15, 9, "val")
    final = open_run_data(replace(where, role="transfer"), seed=0)
    assert final.evaluation is not None
    assert (len(final.train), len(final.evaluation), final.evaluation.split) == (24, 6, "test")
    seen = {final.train.image(index).numpy().tobytes() for index in range(24)}
    own = {image.transpose(2, 0, 1).tobytes() for name in ("train", "val") for image in arrays[f"x_{name}"]}
    assert seen == own


def test_a_class_of_one_image_cannot_be_in_the_dev_split(tmp_path: Path) -> None:
    images = made_dataset(9).pictures.images  # type: ignore[attr-defined]
    targets = np.array([0, 0, 0, 0, 1, 1, 1, 1, 2])
    np.savez(tmp_path / "rare.npz", x_train=images, y_train=targets, x_test=images, y_test=targets, class_names=CLASSES)
    with pytest.raises(InputError, match="has only one training image of left"):
        open_run_data(DataConfig(where=str(tmp_path / "rare.npz"), role="dev"), seed=0)


def _tried(rate: float, accuracy: float | None = None, loss: float | None = None) -> Row:
    reason = "the loss was not finite" if accuracy is None else None
    figures = {"accuracy": accuracy, "loss": loss, "diverged": reason}
    return Row(cell=f"rate {rate:g}", folder="", varied={"rate": rate}, steps=4, **figures)


def test_the_best_rate_has_the_highest_accuracy_and_then_the_lowest_loss() -> None:
    rows = (_tried(0.1, 0.5, 1.0), _tried(0.2, 0.75, 3.0), _tried(0.4))
    assert best_rate(Table(rows=rows)) == 0.2
    assert best_rate(Table(rows=(*rows, _tried(0.3, 0.75, 2.0)))) == 0.3
    with pytest.raises(DivergedError, match=r"every learning rate diverged; with rate 0\.4"):
        best_rate(Table(rows=(_tried(0.2), _tried(0.4))))


def test_one_run_has_no_spread() -> None:
    assert spread([0.5]) is None
    assert spread([0.5, None]) is None


@pytest.mark.parametrize("changes", [{"rates": ()}, {"rates": (0.1, 0.1)}, {"rates": (0.0,)}, {"runs": 0}])
def test_what_is_no_plan_is_refused(changes: dict[str, object], plan: FinetunePlan) -> None:
    with pytest.raises(ConfigError):
        replace(plan, **changes)
