"""Training for longer: a new run that begins with the state of another, to the last bit."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tests.training.making import StopAfter, assert_same, made_config, made_loop, made_run, weights
from vitrail.base.errors import ConfigError, InputError
from vitrail.base.lines import read_rows
from vitrail.runs.conduct import conduct
from vitrail.runs.config import ExtendConfig, RunConfig
from vitrail.runs.extend import extension_of
from vitrail.runs.folder import RunFolder
from vitrail.training.endings import StoppedError
from vitrail.training.signals import StopSignal


class _Heard:
    def start(self, step: int) -> None:
        self.first = step

    def note(self, sentence: str) -> None: ...

    def __call__(self, step: int, values: dict[str, float]) -> None: ...


def _constant(**changes: object) -> RunConfig:
    """A run whose learning rate does not know its length: then longer is the same as planned longer."""
    config = made_config()
    return replace(config, schedule=replace(config.schedule, shape="constant"), **changes)


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    run = made_run(tmp_path_factory.mktemp("runs") / "old", _constant(steps=6))
    conduct(run, _Heard(), StopSignal())
    return run.folder


def test_a_run_that_is_extended_ends_as_one_that_was_planned_so_long(old: RunFolder, tmp_path: Path) -> None:
    whole, longer = (tmp_path / name for name in ("whole", "longer"))
    conduct(made_run(whole, _constant(steps=10)), _Heard(), StopSignal())
    config, heard = _constant(steps=10, extends=extension_of(old)), _Heard()
    result = conduct(made_run(longer, config), heard, StopSignal())
    assert heard.first == 6
    assert result.steps == 10
    ends = [
        made_loop(made_run(whole, _constant(steps=10)), resume=True),
        made_loop(made_run(longer, config), resume=True),
    ]
    assert_same(*map(weights, ends))
    rows = read_rows(whole / "metrics.jsonl")
    assert read_rows(longer / "metrics.jsonl")[-3:] == rows[-3:]
    assert all(row["step"] > 6 for row in read_rows(longer / "metrics.jsonl"))


def test_a_stopped_extension_resumes_without_the_old_run(old: RunFolder, tmp_path: Path) -> None:
    copy = RunFolder(path=tmp_path / "copy")
    shutil.copytree(old.path, copy.path)
    config = _constant(steps=10, extends=extension_of(copy))
    straight = made_run(tmp_path / "straight", config)
    conduct(straight, _Heard(), StopSignal())
    stopped = made_run(tmp_path / "stopped", config)
    with pytest.raises(StoppedError):
        conduct(stopped, _Heard(), StopAfter(2))
    shutil.rmtree(copy.path)
    conduct(stopped, _Heard(), StopSignal())
    one, other = (made_loop(run, resume=True) for run in (straight, stopped))
    assert_same(weights(one), weights(other))
    assert straight.folder.path.joinpath("metrics.jsonl").read_bytes() == (
        stopped.folder.path.joinpath("metrics.jsonl").read_bytes()
    )


def test_a_state_that_is_gone_or_another_is_refused(old: RunFolder, tmp_path: Path) -> None:
    there = extension_of(old)
    for extends, words in (
        (replace(there, step=5), "step-000000005.safetensors, .* does not exist"),
        (replace(there, digest="0" * 64), "is not the state with which"),
    ):
        run = made_run(tmp_path / extends.digest[:9], _constant(steps=10, extends=extends))
        with pytest.raises(InputError, match=words):
            conduct(run, _Heard(), StopSignal())


def test_a_folder_without_a_state_cannot_be_extended(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has no checkpoint from which it could be extended; it has none yet"):
        extension_of(RunFolder(path=tmp_path))


def test_an_extension_must_be_longer() -> None:
    with pytest.raises(ConfigError, match="steps is 6, but the run that is extended has 6"):
        _constant(steps=6, extends=ExtendConfig(run="old", step=6, digest="0"))


def test_what_is_best_and_early_stopping_begin_again(old: RunFolder, tmp_path: Path) -> None:
    config = _constant(steps=10, extends=extension_of(old), evaluate_every=2, patience=5)
    run = made_run(tmp_path / "run", config)
    conduct(run, _Heard(), StopSignal())
    progress = made_loop(run, resume=True).state.progress
    assert progress.best_step is not None
    assert progress.best_step > 6
    assert torch.isfinite(torch.tensor(progress.best))
