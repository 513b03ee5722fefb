"""A loss that is no number: kept, passed over, and the end after three in a row."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from tests.training.making import assert_same, made_config, made_loop, made_run, weights
from vitrail.base.container import open_container
from vitrail.base.errors import WriteError
from vitrail.base.lines import read_rows
from vitrail.data.loader import Batch
from vitrail.model.contract import Model
from vitrail.training import signals
from vitrail.training.endings import DivergedError, StoppedError
from vitrail.training.evaluator import Evaluator
from vitrail.training.loop import Loop
from vitrail.training.signals import StopSignal
from vitrail.training.state import TrainState


class _BadAt(nn.Module):
    """A learner whose loss is NaN at some steps."""

    def __init__(self, learner: nn.Module, state: TrainState, bad: set[int], *, spoil: bool = False) -> None:
        super().__init__()
        self.learner, self.state, self.bad, self.spoil = learner, state, bad, spoil

    def forward(self, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        loss, sums = self.learner(batch)
        state = self.state
        if state.progress.step in self.bad:
            loss = loss * float("nan")
            if self.spoil:
                self.spoil = False
                with torch.no_grad():
                    next(state.learner.parameters()).fill_(float("nan"))
        return loss, sums


def _loop(folder: Path, bad: set[int], *, spoil: bool = False) -> Loop:
    loop = made_loop(made_run(folder))
    return replace(loop, parallel=_BadAt(loop.parallel, loop.state, bad, spoil=spoil))


def test_a_bad_batch_is_kept_and_passed_over(tmp_path: Path) -> None:
    loop = _loop(tmp_path, {3})
    loop.run()
    assert loop.state.progress.step == 10
    assert loop.state.progress.bad_steps == [3]
    kept = open_container(tmp_path / "bad" / "step-000000003.safetensors")
    assert torch.equal(kept.tensor("view.0"), next(loop.batches(3)).images)
    assert loop.state.finite()


def test_weights_that_are_no_numbers_are_replaced_by_the_last_checkpoint(tmp_path: Path) -> None:
    loop = _loop(tmp_path, {5}, spoil=True)
    loop.run()
    assert loop.state.finite()
    assert loop.state.progress.bad_steps == [5]
    clean = _loop(tmp_path / "clean", {5})
    clean.run()
    assert read_rows(tmp_path / "metrics.jsonl") == read_rows(tmp_path / "clean" / "metrics.jsonl")


def test_three_bad_batches_in_a_row_end_the_run_with_a_sentence(tmp_path: Path) -> None:
    loop = _loop(tmp_path, {4, 5, 6})
    with pytest.raises(DivergedError, match="3 times in a row, up to step 6"):
        loop.run()
    assert len(list((tmp_path / "bad").iterdir())) == 3


class _Same(Evaluator[float]):
    """An evaluator that always finds the same."""

    name = "val"

    def __init__(self, every: int) -> None:
        self.every = every

    def evaluate(self, _: Model) -> float:
        return 0.5

    def figures(self, outcome: float) -> dict[str, float]:
        return {"accuracy": outcome}


def test_early_stopping_ends_when_nothing_gets_better(tmp_path: Path) -> None:
    config = replace(made_config(), patience=2, evaluate_every=1, steps=50)
    loop = replace(made_loop(made_run(tmp_path, config)), evaluators=[_Same(1)])
    loop.run()
    assert loop.state.progress.stopped
    assert loop.state.progress.step == 3


def test_a_full_disk_stops_the_run_and_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loop = made_loop(made_run(tmp_path))
    written = []

    def write(file, source, metadata, *, digest):
        written.append(len(written))
        if len(written) == 3:
            raise OSError(28, "No space left on device")
        return original(file, source, metadata, digest=digest)

    from vitrail.training import keeper

    original = keeper.write_container
    monkeypatch.setattr(keeper, "write_container", write)
    with pytest.raises(WriteError, match="No space left"):
        loop.run()
    monkeypatch.undo()
    again = made_loop(made_run(tmp_path), resume=True)
    assert again.state.progress.step == 4
    assert not list((tmp_path / "checkpoints").glob(".*"))


class _Spoilt(_Same):
    """An evaluator whose figure is not finite from some step on."""

    def __init__(self, every: int, figure: float) -> None:
        super().__init__(every)
        self.figure, self.calls = figure, 0

    def evaluate(self, _: Model) -> float:
        self.calls += 1
        return 0.5 if self.calls < 3 else self.figure


@pytest.mark.parametrize("figure", [float("nan"), float("inf")])
def test_a_score_that_is_not_finite_ends_the_run_and_keeps_the_last_good_checkpoint(
    figure: float, tmp_path: Path
) -> None:
    loop = replace(made_loop(made_run(tmp_path)), evaluators=[_Spoilt(2, figure)])
    with pytest.raises(DivergedError, match=f"val_accuracy is {figure} after step 6. .*`learning_rate`") as error:
        loop.run()
    assert (error.value.exit_code, error.value.step) == (1, 6)
    assert loop.keeper.paths()[0].name == "step-000000004.safetensors"
    text = (tmp_path / "metrics.jsonl").read_text()
    assert "NaN" not in text
    assert "Infinity" not in text


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_a_signal_while_a_batch_is_awaited_saves_at_once_and_the_run_ends_the_same(name: str, tmp_path: Path) -> None:
    straight = made_loop(made_run(tmp_path / "straight"))
    straight.run()
    with StopSignal() as stop:
        loop = made_loop(made_run(tmp_path / "run"), stop=stop)

        def hanging(step: int) -> Iterator[Batch]:
            for number, batch in enumerate(made_run(tmp_path / "run").batches(step)):
                if number == 3:
                    threading.Timer(0.2, os.kill, (os.getpid(), getattr(signal, name))).start()
                    time.sleep(60)
                yield batch

        began = time.monotonic()
        with pytest.raises(StoppedError, match="saved at step 3, the same command resumes from there"):
            replace(loop, batches=hanging).run()
    assert time.monotonic() - began < 5
    assert stop.exit_code == 128 + getattr(signal, name)
    again = made_loop(made_run(tmp_path / "run"), resume=True)
    again.run()
    assert_same(weights(again), weights(straight))


def test_one_of_several_ranks_is_more_patient_than_one_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signals, "PATIENCE", 0.5)
    with StopSignal() as stop, stop.deferred():

        def hanging() -> Iterator[int]:
            yield 1
            time.sleep(60)

        batches = stop.awaited(hanging(), alone=False)
        assert next(batches) == 1
        signal.raise_signal(signal.SIGTERM)
        began = time.monotonic()
        with pytest.raises(signals.Interruption):
            next(batches)
        assert 0.3 < time.monotonic() - began < 5
        assert stop.exit_code == 143


def test_a_terminal_that_is_closed_under_nohup_stops_nothing() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with StopSignal() as stop:
            signal.raise_signal(signal.SIGHUP)
            assert not stop.requested
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_signal_interrupts_at_once_where_there_is_nothing_to_save() -> None:
    with StopSignal() as stop, pytest.raises(signals.Interruption):
        signal.raise_signal(signal.SIGHUP)
    assert stop.exit_code == 129


def test_signals_ask_once_and_the_second_ctrl_c_does_not_wait() -> None:
    with StopSignal() as stop, stop.deferred():
        signal.raise_signal(signal.SIGTERM)
        assert stop.requested
        assert stop.exit_code == 143
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
