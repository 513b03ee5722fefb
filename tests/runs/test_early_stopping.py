"""Early stopping from end to end: what is handed on are the weights of the best evaluation, not the last."""

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from torch import Tensor

from tests.training.making import StopAfter, assert_same, made_config, made_loop, made_run, plain
from vitrail.base.lines import read_rows
from vitrail.checkpoint.files import load
from vitrail.runs.conduct import conduct
from vitrail.runs.config import RunConfig
from vitrail.runs.held_out import HeldOut
from vitrail.training.endings import StoppedError
from vitrail.training.schedules import Schedule
from vitrail.training.signals import StopSignal


class _Silent:
    def start(self, step: int) -> None: ...

    def note(self, sentence: str) -> None: ...

    def __call__(self, step: int, values: dict[str, float]) -> None: ...


def _config(**changes: Any) -> RunConfig:
    """A run that gets better and then worse: its rate is far too high to settle."""
    config = plain(made_config(steps=30, evaluate_every=1, averaging=None))
    return replace(config, schedule=Schedule(shape="constant", peak=0.03, warmup_steps=2), **changes)


def _weights_after(folder: Path, config: RunConfig, step: int) -> dict[str, Tensor]:
    """The weights that a twin of the run has when it is stopped after a step; averaged where it averages."""
    loop = made_loop(made_run(folder, config), stop=StopAfter(step))
    with pytest.raises(StoppedError):
        loop.run()
    assert loop.state.progress.step == step
    with nullcontext() if loop.state.average is None else loop.state.average.applied():
        return {name: tensor.clone() for name, tensor in loop.state.learner.model.state_dict().items()}


def _looks(folder: Path) -> dict[int, float]:
    return {row["step"]: row["val_accuracy"] for row in read_rows(folder / "metrics.jsonl") if "val_accuracy" in row}


@pytest.mark.parametrize("averaging", [None, 0.9])
def test_the_model_has_the_weights_of_the_best_evaluation(averaging: float | None, tmp_path: Path) -> None:
    config = _config(patience=3, averaging=averaging)
    run = made_run(tmp_path / "run", config)
    result = conduct(run, _Silent(), StopSignal())
    looks = _looks(run.folder.path)
    best = max(looks, key=lambda step: (looks[step], -step))
    last = max(looks)
    assert best > 1, "the run learns something"
    assert result.steps == last == best + 3 < config.steps
    assert (result.weights, result.accuracy) == ("best", looks[best])
    model = load(run.folder.model)
    assert_same(dict(model.state_dict()), _weights_after(tmp_path / "best", config, best))
    ends = _weights_after(tmp_path / "last", config, last)
    assert any(not tensor.equal(ends[name]) for name, tensor in model.state_dict().items())
    assert model.info.provenance["metrics"]["weights"] == "best"
    assert run.folder.read_result().accuracy == looks[best]
    assert not run.folder.best.exists()


def test_a_run_that_never_stops_early_hands_on_the_first_of_its_best_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = iter([0.1, 0.3, 0.2, 0.6, 0.5, 0.6, 0.4, 0.6])  # the last of the weights that are saved
    monkeypatch.setattr(HeldOut, "figures", lambda *_: {"accuracy": next(told), "loss": 1.0})
    config = _config(patience=30, steps=7)
    run = made_run(tmp_path / "run", config)
    result = conduct(run, _Silent(), StopSignal())
    assert (result.steps, result.weights) == (7, "best")
    monkeypatch.undo()
    assert_same(dict(load(run.folder.model).state_dict()), _weights_after(tmp_path / "best", config, 4))


def test_without_patience_the_last_weights_are_handed_on(tmp_path: Path) -> None:
    config = _config(steps=6)
    run = made_run(tmp_path / "run", config)
    assert conduct(run, _Silent(), StopSignal()).weights == "last"
    longer = replace(config, steps=7)
    assert_same(dict(load(run.folder.model).state_dict()), _weights_after(tmp_path / "last", longer, 6))


def test_a_run_that_was_stopped_after_its_best_evaluation_hands_on_the_same(tmp_path: Path) -> None:
    config = _config(patience=3)
    straight, stopped = (made_run(tmp_path / name, config) for name in ("straight", "stopped"))
    result = conduct(straight, _Silent(), StopSignal())
    for look in range(1, result.steps):
        with pytest.raises(StoppedError):
            conduct(stopped, _Silent(), StopAfter(1 if look == 1 else 2))
        assert max(_looks(stopped.folder.path), default=0) == look - 1  # the last one is made up for
    conduct(stopped, _Silent(), StopSignal())
    assert_same(dict(load(stopped.folder.model).state_dict()), dict(load(straight.folder.model).state_dict()))
    assert read_rows(stopped.folder.path / "metrics.jsonl") == read_rows(straight.folder.path / "metrics.jsonl")
