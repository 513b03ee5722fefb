"""A run goes to its end once, and nothing on the way is done twice."""

import os
import re
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.training.making import StopAfter, made_config, made_run
from vitrail.base import trackers
from vitrail.base.errors import CheckpointError, InputError, VitrailError
from vitrail.base.lines import read_rows
from vitrail.base.ranks import Ranks
from vitrail.base.settings import to_dict
from vitrail.checkpoint.files import load
from vitrail.evaluation.classify import Answers
from vitrail.model.contract import Model
from vitrail.runs import held_out as held_out_module
from vitrail.runs import speed
from vitrail.runs.conduct import Watching, conduct, is_finished
from vitrail.runs.execution import Execution
from vitrail.runs.folder import RunFolder, write_json
from vitrail.runs.held_out import HeldOut
from vitrail.runs.speed import pace
from vitrail.runs.train import Run
from vitrail.training.endings import DivergedError, StoppedError
from vitrail.training.loop import Loop
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


@pytest.mark.parametrize("damage", ["flip", "cut", "foreign"])
def test_a_finished_run_whose_model_is_damaged_does_not_say_that_it_is_done(damage: str, tmp_path: Path) -> None:
    run = made_run(tmp_path / "run", made_config(steps=3))
    result = conduct(run, _Heard(), StopSignal())
    model = run.folder.model
    whole = model.read_bytes()
    spoilt = {"flip": whole[:-1] + bytes([whole[-1] ^ 1]), "cut": whole[:-9], "foreign": b"GIF89a" + whole}[damage]
    model.write_bytes(spoilt)
    with pytest.raises(CheckpointError, match=r"was finished, but its model\.safetensors is damaged"):
        conduct(run, _Heard(), StopSignal())
    model.unlink()
    again = conduct(run, _Heard(), StopSignal())
    assert again.figures == result.figures
    ours = load(model).state_dict()
    model.write_bytes(whole)
    assert all(ours[name].equal(tensor) for name, tensor in load(model).state_dict().items())


def test_a_finished_run_with_other_settings_now_does_not_say_that_it_is_done(tmp_path: Path) -> None:
    run = made_run(tmp_path / "run", made_config(steps=3))
    conduct(run, _Heard(), StopSignal())
    edited = made_config(steps=6)
    write_json(run.folder.config, to_dict(edited))
    with pytest.raises(CheckpointError, match=r"steps is 6 here and 3 there.*`extend` it"):
        conduct(made_run(run.folder.path, edited), _Heard(), StopSignal())
    assert run.folder.finished


class _Nothing(_Heard):
    def __call__(self, *_: object) -> None:
        raise AssertionError("trained before the damage was seen")


@pytest.mark.parametrize("name", ["config.json", "pace.jsonl", "result.json"])
@pytest.mark.parametrize("text", ["", "[", "[]", "null", '{"step": 1}', "[" * 10**5, "\xff", '{"a": NaN}', "1" * 5000])
def test_a_damaged_small_file_is_one_sentence_with_its_name_before_any_training(
    name: str, text: str, tmp_path: Path
) -> None:
    config = made_config(steps=6, minutes=10.0)
    run = made_run(tmp_path / "run", config)
    with pytest.raises(StoppedError):
        conduct(run, _Heard(), StopAfter(3))
    run.folder.model.touch()  # with a result it would be finished
    path = run.folder.path / name
    path.write_bytes(text.encode("latin-1") + b"\n")
    if (name, text) == ("pace.jsonl", ""):
        path.write_bytes(b"\n")
    with pytest.raises(VitrailError, match=name) as error:
        conduct(run, _Nothing(), StopSignal())
    assert "\n" not in str(error.value)


def test_damaged_lines_of_metrics_and_skipped_images_are_noted_and_cost_nothing_else(tmp_path: Path) -> None:
    config = made_config(steps=6, log_every=1)
    straight, run = (made_run(tmp_path / name, config) for name in ("straight", "run"))
    conduct(straight, _Heard(), StopSignal())
    with pytest.raises(StoppedError):
        conduct(run, _Heard(), StopAfter(4))
    for name in ("metrics.jsonl", "timing.jsonl", "skipped.jsonl", "skipped-1.jsonl"):
        path = run.folder.path / name
        path.write_bytes(b"{\n" + (path.read_bytes() if path.exists() else b'{"name": "cat.png"}\n'))
    notes: list[str] = []
    heard = _Heard()
    heard.note = notes.append  # type: ignore[method-assign]
    result = conduct(run, heard, StopSignal())
    assert [note.split(" is damaged")[0].rpartition("/")[2] for note in notes] == [
        "metrics.jsonl",
        "timing.jsonl",
        "skipped-1.jsonl",
        "skipped.jsonl",
    ]
    assert result.skipped == ("cat.png",)
    assert (run.folder.path / "metrics.jsonl").read_bytes() == (straight.folder.path / "metrics.jsonl").read_bytes()


def test_weights_that_are_not_finite_are_never_saved(tmp_path: Path) -> None:
    class _Spoiling(_Heard):
        def __call__(self, step: int, values: dict[str, float]) -> None:
            if step == 3 and "loss" in values:
                with torch.no_grad():
                    next(loops[0].state.learner.parameters()).fill_(float("inf"))

    loops: list[Loop] = []
    run = made_run(tmp_path / "run", made_config(steps=3, log_every=1, averaging=None))
    run = replace(run, data=replace(run.data, evaluation=None))
    real = Run.loop

    def looping(self: Run, **rest: Any) -> Loop:
        loops.append(real(self, **rest))
        return loops[0]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Run, "loop", looping)
        with pytest.raises(DivergedError, match="is not finite after step 3") as error:
            conduct(run, _Spoiling(), StopSignal())
    assert error.value.exit_code == 1
    assert not run.folder.model.exists()
    assert [path.name for path in run.folder.checkpoints.iterdir()] == ["step-000000002.safetensors"]


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


def test_an_odd_batch_is_mixed_on_one_rank_and_refused_where_pairs_would_be_of_two(tmp_path: Path) -> None:
    made_run(tmp_path / "odd", made_config(batch=7)).check()  # the last image stays as it is
    made_run(tmp_path / "pairs", made_config(batch=12), ranks=Ranks(world=2)).check()
    with pytest.raises(InputError, match=r"has 7 images in a step, but .* choose a `batch` that is a multiple of 4"):
        made_run(tmp_path / "split", made_config(batch=14), ranks=Ranks(world=2)).check()


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

    def asking(batches: Any, evaluation: Any, file: Any) -> Any:
        for batch in real(batches, evaluation, file):
            if evaluation is stopped.data.evaluation:
                seen.append(1)
                stop._request(signal.SIGTERM, None)
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
