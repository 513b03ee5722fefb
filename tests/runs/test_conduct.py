"""A run goes to its end once, and nothing on the way is done twice."""

from pathlib import Path

import pytest
from torch import nn

from tests.train.making import made_config, made_run
from vitrail.checkpoint.files import load
from vitrail.evaluate.classify import Answers
from vitrail.runs.conduct import Watching, conduct, is_finished
from vitrail.runs.train import Run
from vitrail.train.signals import StopSignal


class _Heard:
    def __init__(self) -> None:
        self.starts: list[int] = []

    def start(self, step: int) -> None:
        self.starts.append(step)

    def note(self, sentence: str) -> None: ...

    def __call__(self, step: int, values: dict[str, float]) -> None: ...


def test_a_run_goes_to_its_end_once(tmp_path: Path) -> None:
    run, heard = made_run(tmp_path / "run", made_config(steps=3)), _Heard()
    assert isinstance(heard, Watching)
    result = conduct(run, heard, StopSignal())
    assert is_finished(run)
    again = conduct(run, heard, StopSignal())
    assert (again["digest"], again["steps"]) == (result["digest"], 3)
    assert heard.starts == [0]


def test_the_held_out_images_are_looked_at_once_after_the_last_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = []
    asked = Run.answers

    def counting(run: Run, model: nn.Module) -> Answers | None:
        looks.append(1)
        return asked(run, model)

    monkeypatch.setattr(Run, "answers", counting)
    run = made_run(tmp_path / "run", made_config(steps=6, evaluate_every=3))
    result = conduct(run, _Heard(), StopSignal())
    assert len(looks) == 2  # at steps 3 and 6
    model = load(run.folder.model)
    again = asked(run, model)
    assert again is not None
    assert (result["accuracy"], result["loss"]) == (again.accuracy, pytest.approx(again.loss, rel=1e-6))
