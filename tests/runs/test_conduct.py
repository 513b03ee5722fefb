"""A run goes to its end once, and nothing on the way is done twice."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.training.making import StopAfter, made_config, made_run
from vitrail.base import trackers
from vitrail.base.errors import InputError
from vitrail.base.lines import read_rows
from vitrail.base.ranks import Ranks
from vitrail.checkpoint.files import load
from vitrail.evaluation.classify import Answers
from vitrail.model.contract import Model
from vitrail.runs import held_out as held_out_module
from vitrail.runs import speed
from vitrail.runs.conduct import Watching, conduct, is_finished
from vitrail.runs.config import Execution
from vitrail.runs.folder import RunFolder
from vitrail.runs.held_out import HeldOut
from vitrail.runs.speed import pace
from vitrail.runs.train import Run
from vitrail.training.loop import StoppedError
from vitrail.training.signals import StopSignal


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
    assert again == result
    assert result.steps == 3
    assert heard.starts == [0]


def test_the_held_out_images_are_looked_at_once_after_the_last_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = []
    evaluate = HeldOut.evaluate

    def counting(held_out: HeldOut, model: Model) -> Answers:
        looks.append(1)
        return evaluate(held_out, model)

    monkeypatch.setattr(HeldOut, "evaluate", counting)
    run = made_run(tmp_path / "run", made_config(steps=6, evaluate_every=3))
    result = conduct(run, _Heard(), StopSignal())
    assert len(looks) == 2  # at steps 3 and 6
    model = load(run.folder.model)
    held_out = run.held_out()
    assert held_out is not None
    again = evaluate(held_out, model)
    assert (result.accuracy, result.loss) == (again.accuracy, pytest.approx(again.loss, rel=1e-6))


def test_a_second_process_on_the_same_run_is_refused_and_spoils_nothing(tmp_path: Path) -> None:
    run = made_run(tmp_path / "run", made_config(steps=3))
    refusals: list[str] = []

    class _Second(_Heard):
        def start(self, _: int) -> None:
            before = sorted(path.name for path in run.folder.path.iterdir())
            with pytest.raises(InputError, match="another process is working on") as refused:
                conduct(run, _Heard(), StopSignal())
            refusals.append(str(refused.value))
            assert refused.value.exit_code == 2
            assert sorted(path.name for path in run.folder.path.iterdir()) == before

    conduct(run, _Second(), StopSignal())
    assert len(refusals) == 1
    assert not list(run.folder.path.glob(".*"))


class _Other(Ranks):
    """The second of two ranks, after the first was refused."""

    def any(self, flag: bool) -> bool:
        assert not flag
        return True


def test_a_refusal_of_the_first_rank_ends_the_others(tmp_path: Path) -> None:
    run = made_run(tmp_path / "run", made_config(steps=3), ranks=_Other(rank=1, world=2))
    with pytest.raises(InputError, match="the first rank could not begin, and reports why"):
        conduct(run, _Heard(), StopSignal())
    assert not list(run.folder.path.iterdir())


@pytest.mark.slow
def test_two_ranks_of_a_second_command_end_together(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command += ["-m", "vitrail.cli.main", "train", "sample", "--steps", "4", "--device", "cpu", "--out", str(tmp_path)]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(root / "src")}
    with RunFolder(path=tmp_path).claim():
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode != 0
    assert done.stderr.count("vitrail: another process is working on") == 1
    assert re.search(r"exitcode\s*: 2\b", done.stderr)
    assert not list(tmp_path.iterdir())


class _Tracker:
    """A tracker that counts how often it was opened and closed."""

    opened = closed = 0

    def __init__(self, *_: object) -> None:
        _Tracker.opened += 1

    def log(self, step: int, values: dict[str, float]) -> None: ...

    def close(self) -> None:
        _Tracker.closed += 1


@pytest.fixture
def tracker(monkeypatch: pytest.MonkeyPatch) -> type[_Tracker]:
    monkeypatch.setattr(_Tracker, "opened", 0)
    monkeypatch.setattr(_Tracker, "closed", 0)
    monkeypatch.setitem(trackers._TRACKERS, "mlflow", _Tracker)  # type: ignore[arg-type]
    return _Tracker


def _tracked(folder: Path) -> Run:
    config = made_config(steps=6, execution=Execution(checkpoint_every=2, device="cpu", track=("mlflow",)))
    return made_run(folder, config)


def test_trackers_are_closed_however_a_run_ends(tmp_path: Path, tracker: type[_Tracker]) -> None:
    run = _tracked(tmp_path / "run")
    with pytest.raises(StoppedError):
        conduct(run, _Heard(), StopAfter(2))
    assert (tracker.opened, tracker.closed) == (1, 1)

    class _Impatient(_Heard):
        def __call__(self, _: int, __: dict[str, float]) -> None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        conduct(run, _Impatient(), StopSignal())
    assert (tracker.opened, tracker.closed) == (2, 2)
    conduct(run, _Heard(), StopSignal())
    assert (tracker.opened, tracker.closed) == (3, 3)


def test_trackers_hear_nothing_of_trials(tmp_path: Path, tracker: type[_Tracker]) -> None:
    run = _tracked(tmp_path / "run")
    pace(run, for_seconds=0.01)
    assert speed._runs_with(run, 4)
    assert tracker.opened == 0


def test_who_asks_to_stop_does_not_wait_for_an_evaluation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = made_config(steps=6, evaluate_every=3)
    straight, stopped = (made_run(tmp_path / name, config) for name in ("straight", "stopped"))
    conduct(straight, _Heard(), StopSignal())
    stop, seen = StopSignal(), []
    real = held_out_module.noted

    def asking(batches: Any, held: Any, file: Any) -> Any:
        for batch in real(batches, held, file):
            if held is stopped.data.held:
                seen.append(1)
                stop._ask(signal.SIGTERM, None)
            yield batch

    monkeypatch.setattr(held_out_module, "noted", asking)
    with pytest.raises(StoppedError, match="stopped; the run is saved at step 3"):
        conduct(stopped, _Heard(), stop)
    assert len(seen) == 1  # of several batches
    assert not any("val_loss" in row for row in read_rows(stopped.folder.path / "metrics.jsonl"))
    monkeypatch.setattr(held_out_module, "noted", real)
    conduct(stopped, _Heard(), StopSignal())
    assert (stopped.folder.path / "metrics.jsonl").read_bytes() == (straight.folder.path / "metrics.jsonl").read_bytes()
    ours, theirs = (load(run.folder.model).state_dict() for run in (stopped, straight))
    assert all(ours[name].equal(theirs[name]) for name in ours)
