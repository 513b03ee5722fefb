"""`vitrail train --track`: stand-ins for the three trackers are sent what the run's own files hold."""

import json
import sys
import types
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.training.making import made_archive
from vitrail.base.lines import read_rows
from vitrail.cli.main import main

pytestmark = pytest.mark.usefixtures("unchecked")


@dataclass
class Sent:
    """What one tracker was sent."""

    name: str = ""
    settings: Any = None
    values: list[tuple[int, str, float]] = field(default_factory=list)
    ends: int = 0

    def take(self, values: dict[str, float], step: int) -> None:
        assert not self.ends
        self.values += [(step, name, value) for name, value in values.items()]

    def end(self) -> None:
        self.ends += 1


def _wandb(sent: Sent) -> types.ModuleType:
    module = types.ModuleType("wandb")

    def init(*, project: str, name: str, dir: str, config: dict[str, Any]) -> object:  # noqa: A002 - as there
        assert (project, Path(dir).name) == ("vitrail", name)
        sent.name, sent.settings = name, config
        return types.SimpleNamespace(log=sent.take, finish=sent.end)

    module.init = init  # type: ignore[attr-defined]
    return module


def _mlflow(sent: Sent) -> types.ModuleType:
    module = types.ModuleType("mlflow")
    module.start_run = lambda run_name: setattr(sent, "name", run_name)  # type: ignore[attr-defined]
    module.log_dict = lambda settings, _: setattr(sent, "settings", settings)  # type: ignore[attr-defined]
    module.log_metrics = sent.take  # type: ignore[attr-defined]
    module.end_run = sent.end  # type: ignore[attr-defined]
    return module


def _tensorboard(sent: Sent) -> types.ModuleType:
    class SummaryWriter:
        def __init__(self, folder: str) -> None:
            assert Path(folder).name == "tensorboard"
            sent.name = Path(folder).parent.name

        def add_text(self, _: str, text: str) -> None:
            sent.settings = text

        def add_scalar(self, name: str, value: float, step: int) -> None:
            sent.take({name: value}, step)

        def close(self) -> None:
            sent.end()

    module = types.ModuleType("torch.utils.tensorboard")
    module.SummaryWriter = SummaryWriter  # type: ignore[attr-defined]
    return module


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> dict[str, Sent]:
    found = {name: Sent() for name in ("tensorboard", "wandb", "mlflow")}
    monkeypatch.setitem(sys.modules, "tensorboard", types.ModuleType("tensorboard"))
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", _tensorboard(found["tensorboard"]))
    monkeypatch.setitem(sys.modules, "wandb", _wandb(found["wandb"]))
    monkeypatch.setitem(sys.modules, "mlflow", _mlflow(found["mlflow"]))
    return found


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "made.npz"
    return made_archive(path)


def _words(data: Path, out: Path, *track: str) -> list[str]:
    words = ["train", str(data), "--steps", "6", "--batch", "6", "--threads", "1", "--device", "cpu"]
    return [*words, "--evaluate-every", "2", "--track", *track, "--out", str(out)]


def _held(run: Path) -> list[tuple[int, str, float]]:
    """Everything that the files of a run hold, as step, name and value."""
    rows = [row for name in ("metrics.jsonl", "timing.jsonl") for row in read_rows(run / name)]
    return sorted((row["step"], name, value) for row in rows for name, value in row.items() if name != "step")


def test_every_tracker_is_sent_what_the_files_hold(data: Path, tmp_path: Path, sent: dict[str, Sent]) -> None:
    out = tmp_path / "run-7"
    assert main(_words(data, out, *sent)) == 0
    held = _held(out)
    assert {name for _, name, _ in held} >= {"loss", "learning_rate", "val_accuracy", "val_loss", "images_per_second"}
    assert {step for step, name, _ in held if name == "val_accuracy"} == {2, 4, 6}
    stored = json.loads((out / "config.json").read_text())
    for name, tracker in sent.items():
        assert sorted(tracker.values) == held, name
        assert tracker.name == "run-7"
        assert tracker.ends == 1
    assert json.loads(json.dumps(sent["wandb"].settings)) == stored
    assert json.loads(json.dumps(sent["mlflow"].settings)) == stored
    assert sent["tensorboard"].settings == str(sent["wandb"].settings)


def test_only_those_that_were_asked_for_are_told_and_a_finished_run_tells_nothing_again(
    data: Path, tmp_path: Path, sent: dict[str, Sent]
) -> None:
    out = tmp_path / "run"
    assert main(_words(data, out, "wandb")) == 0
    assert sent["wandb"].values
    assert not sent["tensorboard"].values
    assert not sent["mlflow"].values
    before = len(sent["wandb"].values)
    assert main(_words(data, out, "wandb")) == 0
    assert (len(sent["wandb"].values), sent["wandb"].ends) == (before, 1)


def test_a_tracker_that_is_not_installed_ends_the_run_before_it_begins(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "mlflow", None)
    assert main(_words(data, tmp_path / "run", "mlflow")) == 2
    captured = capsys.readouterr()
    assert "--track mlflow needs mlflow" in captured.err
    assert "pip install 'vitrail[mlflow]'" in captured.err
    assert not (tmp_path / "run" / "metrics.jsonl").exists()
