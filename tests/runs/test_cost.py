"""What a run took is counted from the steps that it made, not from those that it might have made."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.runs.test_conduct import _Heard
from tests.training.making import made_config, made_run, plain
from vitrail.base.journal import Journal
from vitrail.base.lines import read_rows
from vitrail.model.config import ViTConfig
from vitrail.runs import cost as cost_module
from vitrail.runs.conduct import conduct
from vitrail.runs.config import RunConfig, Stage
from vitrail.runs.cost import costs, training_flops
from vitrail.runs.held_out import HeldOut
from vitrail.training.optimizers import OptimizerConfig
from vitrail.training.signals import StopSignal


def _macs(vit: ViTConfig, side: int) -> int:
    """The products of a Vision Transformer without class token, written out."""
    tokens = (side // vit.patch_size[0]) ** 2
    embedding = tokens * vit.patch_size[0] ** 2 * vit.channels * vit.dim
    block = 4 * tokens * vit.dim**2 + 2 * tokens**2 * vit.dim + 2 * tokens * vit.dim * vit.mlp_dim
    return embedding + vit.depth * block + vit.dim * vit.num_classes


def _vit(config: RunConfig) -> ViTConfig:
    return config.model


def test_a_step_takes_six_flops_for_each_product() -> None:
    config = plain(made_config())
    assert training_flops(config, 7) == 6 * 7 * 8 * _macs(_vit(config), 8)
    dropped = replace(config, objective=replace(config.objective, drop_patches=0.25))
    assert training_flops(dropped, 7) == pytest.approx(0.75 * training_flops(config, 7))


def test_stages_count_by_their_own_size_as_far_as_they_were_reached() -> None:
    config = replace(plain(made_config()), stages=(Stage(until=0.5, image_size=(4, 4)),))  # 5 of 10 steps
    small, large = 6 * 8 * _macs(_vit(config), 4), 6 * 8 * _macs(_vit(config), 8)
    assert training_flops(config, 10) == 5 * small + 5 * large
    assert training_flops(config, 7) == 5 * small + 2 * large
    assert training_flops(config, 3) == 3 * small


def test_what_is_frozen_needs_no_gradients() -> None:
    config = plain(made_config())
    vit, whole = _vit(config), training_flops(config, 1)

    def share(*frozen: str) -> float:
        return training_flops(replace(config, optimizer=OptimizerConfig(frozen=frozen)), 1) / whole

    embedding, head = 16 * 12 * vit.dim, vit.dim * vit.num_classes
    everything = 6 * _macs(vit, 8) - 2 * embedding  # images need no gradient
    only_head = 2 * _macs(vit, 8) + 2 * head
    assert share("embedding.*", "encoder.*") == pytest.approx(only_head / everything, rel=1e-6)
    kernels = 16 * (4 * vit.dim**2 + 2 * vit.dim * vit.mlp_dim)
    assert share("encoder.blocks.1.*") == pytest.approx((everything - 2 * kernels) / everything, rel=1e-6)


def test_early_stopping_costs_what_was_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cost_module, "matmul_peak", lambda *_: 1e9)
    monkeypatch.setattr(HeldOut, "figures", lambda *_: {"accuracy": 0.5, "loss": 1.0})  # it gets no better
    config = made_config(steps=1000, evaluate_every=2, log_every=3, patience=1)
    run = made_run(tmp_path / "run", config)
    result = conduct(run, _Heard(), StopSignal())
    assert result.steps == 4
    assert result.epochs == pytest.approx(4 * 8 / 42)
    spent, (row,) = result.cost, read_rows(tmp_path / "run" / "timing.jsonl")
    flops = 6 * 8 * _macs(_vit(config), 8) * 0.75
    assert spent.exaflops == pytest.approx(4 * flops / 1e18)
    assert row["step"] == 3
    assert spent.images_per_second == pytest.approx(3 * 8 / row["seconds"])
    assert spent.gflops_per_second == pytest.approx(3 * flops / row["seconds"] / 1e9)
    assert spent.share_of_peak == pytest.approx(3 * flops / row["seconds"] / 1e9)


def test_time_that_a_stop_has_lost_does_not_make_a_run_faster(tmp_path: Path) -> None:
    run = made_run(tmp_path)
    journal = Journal(tmp_path)
    journal.log(3, {}, {"seconds": 2.0, "images_per_second": 12.0})  # 3 steps of 8 images
    journal.log(6, {}, {"seconds": 1.0, "images_per_second": 8.0})  # 1 of 3, since a stop after step 5
    spent = costs(run, 6)
    assert spent.images_per_second == pytest.approx(32 / 3)
    assert spent.seconds == 3.0


def test_a_run_whose_time_was_never_noted_has_no_speed(tmp_path: Path) -> None:
    spent = costs(made_run(tmp_path), 2)
    assert spent.as_dict().keys() == {"parameters", "gmacs_per_image", "seconds"}
