"""Measurements: one line each, rewound to a step, and sent to every tracker."""

import sys
import types
from pathlib import Path

import pytest

from vitrail.base.errors import ConfigError, WriteError
from vitrail.base.journal import Journal
from vitrail.base.lines import read_rows
from vitrail.base.trackers import make_trackers


class FakeTracker:
    """A tracker that records its calls."""

    def __init__(self) -> None:
        self.values: list[tuple[int, dict[str, float]]] = []
        self.closed = False

    def log(self, step: int, values: dict[str, float]) -> None:
        self.values.append((step, values))

    def close(self) -> None:
        self.closed = True


def test_metrics_and_timing_are_lines_of_their_own(tmp_path: Path) -> None:
    tracker = FakeTracker()
    journal = Journal(tmp_path, (tracker,))
    journal.log(3, {"loss": 0.5}, {"seconds": 2.0})
    journal.log(6, {"val_accuracy": 0.25})
    journal.close()
    assert read_rows(tmp_path / "metrics.jsonl") == [{"step": 3, "loss": 0.5}, {"step": 6, "val_accuracy": 0.25}]
    assert read_rows(tmp_path / "timing.jsonl") == [{"step": 3, "seconds": 2.0}]
    assert tracker.values == [(3, {"loss": 0.5, "seconds": 2.0}), (6, {"val_accuracy": 0.25})]
    assert tracker.closed


def test_rewinding_forgets_later_lines_and_one_that_was_cut_off(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    for step in range(1, 6):
        journal.log(step, {"loss": float(step)})
    with (tmp_path / "metrics.jsonl").open("a") as file:
        file.write('{"step": 6, "lo')
    journal.rewind(3)
    assert [row["step"] for row in read_rows(tmp_path / "metrics.jsonl")] == [1, 2, 3]


@pytest.mark.parametrize("bad", [b'{"step": 3, "lo', b'{"step": "3"}', b'{"step": 3, "loss": "low"}', b"\xff", b"null"])
def test_rewinding_keeps_the_lines_behind_a_damaged_one_and_the_file_as_it_was(bad: bytes, tmp_path: Path) -> None:
    journal, path = Journal(tmp_path), tmp_path / "metrics.jsonl"
    for step in range(1, 6):
        journal.log(step, {"loss": float(step)})
    lines = path.read_bytes().splitlines()
    lines[2] = bad
    path.write_bytes(b"\n".join(lines) + b"\n")
    before = path.read_bytes()
    (note,) = journal.rewind(4)
    assert [row["step"] for row in read_rows(path)] == [1, 2, 4]
    assert (tmp_path / "metrics.jsonl.damaged-1").read_bytes() == before
    assert "metrics.jsonl is damaged in line 3" in note
    assert "metrics.jsonl.damaged-1" in note
    assert journal.rewind(4) == []


def test_a_journal_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(WriteError, match="could not be written"):
        Journal(tmp_path / "nowhere").log(1, {"loss": 1.0})


def _fake_wandb(calls: list[object]) -> types.ModuleType:
    module = types.ModuleType("wandb")
    run = types.SimpleNamespace(
        log=lambda values, step: calls.append(("log", step, values)), finish=lambda: calls.append("end")
    )

    def init(**settings: object) -> object:
        calls.append(("init", settings["name"], settings["config"]))
        return run

    module.init = init  # type: ignore[attr-defined]
    return module


def _fake_mlflow(calls: list[object]) -> types.ModuleType:
    module = types.ModuleType("mlflow")
    module.start_run = lambda run_name: calls.append(("init", run_name))  # type: ignore[attr-defined]
    module.log_dict = lambda settings, _: calls.append(settings)  # type: ignore[attr-defined]
    module.log_metrics = lambda values, step: calls.append(("log", step, values))  # type: ignore[attr-defined]
    module.end_run = lambda: calls.append("end")  # type: ignore[attr-defined]
    return module


@pytest.mark.parametrize(("name", "fake"), [("wandb", _fake_wandb), ("mlflow", _fake_mlflow)])
def test_a_tracker_sees_settings_values_and_the_end(name, fake, tmp_path: Path, monkeypatch) -> None:
    calls: list[object] = []
    monkeypatch.setitem(sys.modules, name, fake(calls))
    (tracker,) = make_trackers((name,), tmp_path / "run-7", {"steps": 5})
    tracker.log(2, {"loss": 0.5})
    tracker.close()
    assert "run-7" in str(calls[0])
    assert "steps" in str(calls[:2])
    assert ("log", 2, {"loss": 0.5}) in calls
    assert calls[-1] == "end"


def test_tensorboard_gets_scalars(tmp_path: Path, monkeypatch) -> None:
    calls: list[object] = []

    class SummaryWriter:
        def __init__(self, folder: str) -> None:
            calls.append(folder)

        def add_text(self, name: str, text: str) -> None:
            calls.append((name, text))

        def add_scalar(self, name: str, value: float, step: int) -> None:
            calls.append((name, value, step))

        def close(self) -> None:
            calls.append("end")

    monkeypatch.setitem(sys.modules, "tensorboard", types.ModuleType("tensorboard"))
    module = types.ModuleType("torch.utils.tensorboard")
    module.SummaryWriter = SummaryWriter  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", module)
    (tracker,) = make_trackers(("tensorboard",), tmp_path, {"steps": 5})
    tracker.log(2, {"loss": 0.5})
    tracker.close()
    assert calls == [str(tmp_path / "tensorboard"), ("settings", "{'steps': 5}"), ("loss", 0.5, 2), "end"]


def test_a_tracker_that_is_not_installed_gives_the_command_that_installs_it(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(ConfigError, match=r"pip install 'vitrail\[wandb\]'"):
        make_trackers(("wandb",), tmp_path, {})
