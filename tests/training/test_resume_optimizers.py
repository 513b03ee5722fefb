"""Going on is the same run to the last bit with SGD, whose momentum is kept, and with Muon in shares."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tests.training.making import StopAfter, assert_same, made_config, made_loop, made_run, plain, weights
from vitrail.base.lines import read_rows
from vitrail.runs.config import RunConfig
from vitrail.runs.train import Run
from vitrail.training.endings import StoppedError
from vitrail.training.loop import Loop
from vitrail.training.optimizers import OptimizerConfig, OptimizerName


def _config(name: OptimizerName, **changes: object) -> RunConfig:
    optimizer = OptimizerConfig(name=name, weight_decay=0.05, clip_norm=1.0)
    return replace(made_config(), optimizer=optimizer, **changes)  # type: ignore[arg-type]


def _straight(folder: Path, config: RunConfig) -> Loop:
    loop = made_loop(made_run(folder, config))
    loop.run()
    return loop


def _stopped(folder: Path, config: RunConfig, stops: tuple[int, ...]) -> Loop:
    """The same run, stopped after so many steps and gone on with, again and again."""
    for steps in stops:
        with pytest.raises(StoppedError):
            made_loop(made_run(folder, config), resume=True, stop=StopAfter(steps)).run()
    loop = made_loop(made_run(folder, config), resume=True)
    assert loop.state.progress.step == sum(stops)
    loop.run()
    return loop


def _assert_same_run(one: Path, other: Path, config: RunConfig, stops: tuple[int, ...]) -> dict[str, torch.Tensor]:
    straight, stopped = _straight(one, config), _stopped(other, config, stops)
    assert_same(weights(stopped), weights(straight))
    assert stopped.state.progress == straight.state.progress
    assert read_rows(other / "metrics.jsonl") == read_rows(one / "metrics.jsonl")
    return weights(straight)


@pytest.mark.parametrize("stops", [(1,), (5,), (3, 4)])
def test_sgd_goes_on_with_its_momentum(stops: tuple[int, ...], tmp_path: Path) -> None:
    found = _assert_same_run(tmp_path / "one", tmp_path / "other", _config("sgd"), stops)
    momenta = {name: tensor for name, tensor in found.items() if name.endswith(":momentum_buffer")}
    assert len(momenta) == len([name for name in found if name.startswith("average.")])
    assert all(bool(tensor.any()) for tensor in momenta.values())


def test_without_its_momentum_sgd_would_be_another_run(tmp_path: Path) -> None:
    config = _config("sgd")
    with pytest.raises(StoppedError):
        made_loop(made_run(tmp_path / "stopped", config), stop=StopAfter(5)).run()
    forgetful = made_loop(made_run(tmp_path / "stopped", config), resume=True)
    forgetful.state.optimizer.state.clear()
    forgetful.run()
    straight = _straight(tmp_path / "straight", config)
    assert any(not tensor.equal(weights(straight)[name]) for name, tensor in weights(forgetful).items())


@pytest.mark.parametrize("stops", [(1,), (3, 4)])
def test_muon_in_shares_goes_on_with_its_momentum(
    stops: tuple[int, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Run, "threads", 2)
    config = plain(_config("muon", batch=16))
    assert made_loop(made_run(tmp_path / "run", config)).step.shares == 2
    found = _assert_same_run(tmp_path / "one", tmp_path / "other", config, stops)
    kernels = {name.removesuffix(":momentum") for name in found if name.endswith(":momentum")}
    assert kernels == {
        f"optimizer.model.encoder.blocks.{block}.{kernel}.weight"
        for block in (0, 1)
        for kernel in ("attention.qkv", "attention.out", "mlp.hidden", "mlp.out")
    }
    assert any(name.endswith(":exp_avg") for name in found)
