"""Settling a training run: everything is decided, nothing is trained, and it is what the command trains."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.training.making import CLASSES, made_archive
from vitrail.base.errors import InputError
from vitrail.base.ranks import Ranks
from vitrail.base.settings import to_dict
from vitrail.cli.main import main
from vitrail.verbs.settle import settle, stored_execution
from vitrail.verbs.train import TrainRequest


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_archive(tmp_path_factory.mktemp("data") / "made.npz")


@pytest.fixture
def request_(data: Path, tmp_path: Path) -> TrainRequest:
    return TrainRequest(data=data, steps=4, batch=6, device="cpu", learning_rate=0.01, out=tmp_path / "run")


def test_everything_is_decided_and_nothing_written(request_: TrainRequest, tmp_path: Path) -> None:
    run = settle(request_, Ranks())
    assert (run.config.steps, run.config.batch, run.config.schedule.peak) == (4, 6, 0.01)
    assert (run.config.facts.labels, run.config.facts.images) == (CLASSES, 30)
    assert run.config.model.num_classes == 3
    assert list(tmp_path.iterdir()) == []
    assert stored_execution(request_) is None


@pytest.mark.usefixtures("unchecked")
def test_the_command_trains_what_is_settled(request_: TrainRequest, data: Path, tmp_path: Path) -> None:
    words = ["--steps", "4", "--batch", "6", "--device", "cpu", "--learning-rate", "0.01", "--threads", "1"]
    assert main(["train", str(data), *words, "--out", str(tmp_path / "run")]) == 0
    run = settle(replace(request_, threads=1), Ranks())
    assert json.loads((tmp_path / "run" / "config.json").read_text()) == json.loads(json.dumps(to_dict(run.config)))
    resumed = settle(TrainRequest(resume=tmp_path / "run", workers=2), Ranks())
    assert resumed.config == replace(run.config, execution=replace(run.config.execution, workers=2))
    assert stored_execution(TrainRequest(resume=tmp_path / "run")) == run.config.execution
    with pytest.raises(InputError, match=r"batch is 3 here and 6 there\. .* another `out`"):
        settle(TrainRequest(resume=tmp_path / "run", batch=3), Ranks())
    again = settle(TrainRequest(config=tmp_path / "run" / "config.json", seed=5, out=tmp_path / "new"), Ranks())
    assert (again.config, again.folder.path) == (replace(run.config, seed=5), tmp_path / "new")


@pytest.mark.parametrize(
    ("model", "name"), [(None, "made.npz-"), ("Ti/16", "made.npz-Ti-16")], ids=["rule", "model of the paper"]
)
def test_a_folder_is_named_for_data_and_model(model: str | None, name: str, request_: TrainRequest) -> None:
    run = settle(replace(request_, out=None, model=model, image_size=32), Ranks())
    assert str(run.folder.path).startswith(str(Path("runs") / name))


def test_a_micro_batch_and_a_length_are_measured_without_a_trace(request_: TrainRequest, tmp_path: Path) -> None:
    run = settle(replace(request_, micro_batch="auto", minutes=0.001, steps=None), Ranks())
    assert run.config.execution.micro_batch == 6
    assert (run.config.minutes, run.config.steps >= 1) == (0.001, True)
    assert list(tmp_path.iterdir()) == []
