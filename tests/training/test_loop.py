"""A loss that is no number: kept, passed over, and the end after three in a row."""

import signal
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from tests.training.making import made_config, made_loop, made_run
from vitrail.base.container import open_container
from vitrail.base.errors import WriteError
from vitrail.base.lines import read_rows
from vitrail.data.loader import Batch
from vitrail.model.contract import Model
from vitrail.training.evaluator import Evaluator
from vitrail.training.loop import DivergedError, Loop
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


def test_signals_ask_once_and_the_second_ctrl_c_does_not_wait() -> None:
    with StopSignal() as stop:
        signal.raise_signal(signal.SIGTERM)
        assert stop.asked
        assert stop.exit_code == 143
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
