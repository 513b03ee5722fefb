"""Stopping and going on is the same run, to the last bit."""

import gc
import os
import shutil
import signal
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.training.making import StopAfter, assert_same, made_config, made_loop, made_run, weights
from vitrail.base.container import write_container
from vitrail.base.errors import CheckpointError, WorkerError
from vitrail.base.files import atomic_write
from vitrail.base.lines import read_rows
from vitrail.base.tensors import from_tensors
from vitrail.runs.execution import Execution
from vitrail.training.endings import StoppedError
from vitrail.training.loop import Loop
from vitrail.training.signals import StopSignal


def _straight(folder: Path, workers: int = 0) -> Loop:
    loop = made_loop(made_run(folder, _config(workers)))
    loop.run()
    return loop


def _config(workers: int):
    return made_config(execution=Execution(checkpoint_every=2, workers=workers, device="cpu"))


@pytest.fixture(scope="module")
def straight(tmp_path_factory: pytest.TempPathFactory) -> tuple[Loop, Path]:
    folder = tmp_path_factory.mktemp("straight")
    return _straight(folder), folder


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(stops=st.lists(st.integers(1, 9), min_size=1, max_size=3))
def test_a_run_that_was_stopped_anywhere_ends_with_the_same_bits(
    straight: tuple[Loop, Path], tmp_path_factory: pytest.TempPathFactory, stops: list[int]
) -> None:
    folder = tmp_path_factory.mktemp("stopped")
    for looks in stops:
        try:
            made_loop(made_run(folder, _config(0)), resume=True, stop=StopAfter(looks)).run()
        except StoppedError:
            continue
    loop = made_loop(made_run(folder, _config(0)), resume=True)
    loop.run()
    assert_same(weights(loop), weights(straight[0]))
    assert loop.state.progress == straight[0].state.progress
    assert read_rows(folder / "metrics.jsonl") == read_rows(straight[1] / "metrics.jsonl")


@pytest.mark.parametrize(("before", "after"), [(0, 2), (2, 0), (2, 2)])
def test_workers_change_nothing_even_across_a_stop_and_an_epoch(
    straight: tuple[Loop, Path], tmp_path: Path, before: int, after: int
) -> None:
    with pytest.raises(StoppedError):
        made_loop(made_run(tmp_path, _config(before)), stop=StopAfter(5)).run()
    loop = made_loop(made_run(tmp_path, _config(after)), resume=True)
    assert loop.state.progress.step == 5  # 40 of 42 images: the next batch is in two epochs
    loop.run()
    assert_same(weights(loop), weights(straight[0]))


def _with_worker(folder: Path, stop: StopSignal | None = None) -> Loop:
    """A loop with one worker, which saves only when it has to."""
    execution = Execution(checkpoint_every=10**6, workers=1, device="cpu")
    return made_loop(made_run(folder, made_config(steps=2000, evaluate_every=2000, execution=execution)), stop=stop)


def _signal_worker(number: int, after: float = 0.5) -> None:
    """Send a signal to the worker of this process some time from now."""

    def send() -> None:
        for child in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split():
            os.kill(int(child), number)

    threading.Timer(after, send).start()


def test_a_run_whose_worker_is_killed_saves_and_says_so(tmp_path: Path) -> None:
    loop = _with_worker(tmp_path)
    _signal_worker(signal.SIGKILL)
    with pytest.raises(WorkerError, match=r"ended from outside.*the run is saved at step \d+, the same") as error:
        loop.run()
    assert error.value.exit_code == 1
    assert loop.keeper.paths()[0].name == f"step-{loop.state.progress.step:09}.safetensors"
    assert loop.state.progress.step > 0


def test_a_signal_stops_a_run_within_seconds_although_its_worker_is_stopped(tmp_path: Path) -> None:
    with StopSignal() as stop:
        loop = _with_worker(tmp_path, stop)
        _signal_worker(signal.SIGSTOP)
        threading.Timer(2.0, os.kill, (os.getpid(), signal.SIGTERM)).start()
        began = time.monotonic()
        with pytest.raises(StoppedError, match="saved at step"):
            loop.run()
    del loop
    gc.collect()
    assert time.monotonic() - began < 2 + 5
    assert not Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()


def test_a_damaged_checkpoint_is_left_for_the_one_before_it(straight: tuple[Loop, Path], tmp_path: Path) -> None:
    with pytest.raises(StoppedError):
        made_loop(made_run(tmp_path), stop=StopAfter(6)).run()
    _damage(sorted((tmp_path / "checkpoints").iterdir())[-1])
    run = made_run(tmp_path)
    loop = made_loop(run)
    notes = loop.keeper.load(loop.state, run.ranks)
    assert len(notes) == 1
    assert "damaged" in notes[0]
    assert notes[0].endswith("The checkpoint of step 4 is used instead.")
    assert loop.state.progress.step == 4
    loop.journal.rewind(4)
    loop.run()
    assert_same(weights(loop), weights(straight[0]))


def _contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_run_without_a_whole_checkpoint_is_refused_and_stays_as_it_is(tmp_path: Path) -> None:
    with pytest.raises(StoppedError):
        made_loop(made_run(tmp_path), stop=StopAfter(8)).run()
    for path in (tmp_path / "checkpoints").iterdir():
        _damage(path)
    before = _contents(tmp_path)
    with pytest.raises(
        CheckpointError, match=r"no checkpoint of .* can be read: .*step-000000008.* is damaged.*restart"
    ):
        made_loop(made_run(tmp_path), resume=True)
    assert _contents(tmp_path) == before


def test_a_run_whose_checkpoints_are_gone_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoppedError):
        made_loop(made_run(tmp_path), stop=StopAfter(3)).run()
    shutil.rmtree(tmp_path / "checkpoints")
    with pytest.raises(CheckpointError, match="has had checkpoints, but none is left"):
        made_loop(made_run(tmp_path), resume=True)


def test_a_run_that_never_had_a_checkpoint_starts_from_the_beginning(
    straight: tuple[Loop, Path], tmp_path: Path
) -> None:
    loop = made_loop(made_run(tmp_path))
    batches = loop.batches(0)
    loop.take(next(batches), 0.1)
    loop.journal.log(1, {"loss": 1.0})  # and is killed
    again = made_loop(made_run(tmp_path), resume=True)
    again.run()
    assert_same(weights(again), weights(straight[0]))
    assert read_rows(tmp_path / "metrics.jsonl") == read_rows(straight[1] / "metrics.jsonl")


def test_the_lines_of_metrics_are_on_disk_before_a_checkpoint_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    metrics, synced, real = tmp_path / "metrics.jsonl", [], os.fsync

    def noting(handle: int) -> None:
        real(handle)
        if metrics.exists() and os.path.samestat(os.fstat(handle), metrics.stat()):
            newest = max((path.name for path in (tmp_path / "checkpoints").glob("step-*")), default="")
            synced.append((len(read_rows(metrics)), newest[5:14]))

    monkeypatch.setattr(os, "fsync", noting)
    made_loop(made_run(tmp_path)).run()
    # Lines of metrics at steps 3, 6, 9 and 10, of evaluations at 4, 8 and 10; checkpoints at 2, 4, 6, 8 and 10.
    assert synced == [(2, "000000002"), (3, "000000004"), (4, "000000006"), (7, "000000008")]


def _damage(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))


def test_a_checkpoint_of_other_settings_is_refused_and_what_differs_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoppedError):
        made_loop(made_run(tmp_path), stop=StopAfter(4)).run()
    run = made_run(tmp_path, replace(made_config(), seed=4, steps=20))
    with pytest.raises(
        CheckpointError, match=r"other settings: seed is 4 here and 3 there; steps is 20 here and 10 there"
    ):
        made_loop(run, resume=True)


@pytest.mark.parametrize(
    "progress",
    ["", "[]", "null", '{"step": "four"}', '{"step": 4, "sweet": 1}', '{"step": 4, "window": {"loss": NaN}}'],
)
def test_a_checkpoint_with_a_spoilt_progress_is_passed_over_and_named(progress: str, tmp_path: Path) -> None:
    run = made_run(tmp_path)
    with pytest.raises(StoppedError):
        made_loop(run, stop=StopAfter(4)).run()
    loop = made_loop(run)
    path = tmp_path / "checkpoints" / "step-000000004.safetensors"
    metadata = {"vitrail.run": run.config.identity, "vitrail.progress": progress}
    with atomic_write(path) as file:
        write_container(file, from_tensors(loop.state.tensors(), "the run"), metadata, digest=True)
    (note,) = loop.keeper.load(loop.state, run.ranks)
    assert str(path) in note
    assert note.endswith("The checkpoint of step 2 is used instead.")


def test_only_the_newest_checkpoints_are_kept(straight: tuple[Loop, Path]) -> None:
    names = sorted(path.name for path in (straight[1] / "checkpoints").iterdir())
    assert names == ["step-000000008.safetensors", "step-000000010.safetensors"]
