"""Threads with a share of the images each give the gradient of the whole batch, the same bits every time."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tests.training.making import assert_same, made_config, made_loop, made_run, plain, weights
from vitrail.model.backbone import BackboneConfig
from vitrail.training.loop import Loop
from vitrail.training.shares import shares
from vitrail.training.step import Precision


def _loop(folder: Path, *, threads: int, micro_batch: int = 36, precision: Precision = "float32") -> Loop:
    config = plain(made_config(steps=4, batch=36, precision=precision))
    loop = made_loop(made_run(folder, replace(config, execution=replace(config.execution, micro_batch=micro_batch))))
    return replace(loop, step=replace(loop.step, shares=threads))


@pytest.mark.parametrize("threads", range(1, 65))
def test_two_to_four_threads_take_a_share_each_if_it_is_large_enough(threads: int) -> None:
    cut = {images: shares(threads, images) for images in range(1, 1025)}
    if threads in (2, 3, 4):
        assert [images for images, count in cut.items() if count > 1] == list(range(8 * threads, 1025))
        assert set(cut.values()) == {1, threads}
    else:
        assert set(cut.values()) == {1}


@pytest.mark.parametrize("threads", [2, 3, 4])
@pytest.mark.parametrize("micro_batch", [36, 32])
def test_shares_add_up_to_the_batch(threads: int, micro_batch: int, tmp_path: Path) -> None:
    one = _loop(tmp_path / "one", threads=1)
    two = _loop(tmp_path / "two", threads=threads, micro_batch=micro_batch)
    taken = []
    for loop in (one, two):
        batch = next(iter(loop.batches(0)))
        result = loop.take(batch, 1e-2)
        assert result is not None
        taken.append(result)
    assert taken[0].loss == pytest.approx(taken[1].loss, rel=1e-6)
    assert taken[0].norm == pytest.approx(taken[1].norm, rel=1e-5)
    assert taken[0].sums == taken[1].sums
    for ours, theirs in zip(one.state.learner.parameters(), two.state.learner.parameters(), strict=True):
        assert (ours.grad is None) == (theirs.grad is None)
        if ours.grad is not None:
            torch.testing.assert_close(ours.grad, theirs.grad, atol=1e-6, rtol=1e-4)


@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
def test_shares_compute_in_the_precision_of_the_step(precision: Precision, tmp_path: Path) -> None:
    loops = [_loop(tmp_path / str(threads), threads=threads, precision=precision) for threads in (1, 2)]
    exact = _loop(tmp_path / "exact", threads=2)
    for loop in (*loops, exact):
        assert loop.take(next(iter(loop.batches(0))), 1e-2) is not None
    one, two, full = (
        torch.cat([weight.grad.flatten() for weight in loop.state.learner.parameters() if weight.grad is not None])
        for loop in (*loops, exact)
    )
    rounding = (one - full).norm()
    assert 1e-5 < rounding / full.norm() < 0.05  # it is half precision
    assert (two - one).norm() < rounding  # and the same half precision in shares
    assert (two - full).norm() > rounding / 2


def test_the_same_run_has_the_same_bits(tmp_path: Path) -> None:
    loops = [_loop(tmp_path / name, threads=2) for name in ("one", "two")]
    for loop in loops:
        loop.run()
    assert_same(*(weights(loop) for loop in loops))


def test_other_threads_keep_their_number(tmp_path: Path) -> None:
    before = torch.get_num_threads()
    _loop(tmp_path, threads=2).run()
    assert torch.get_num_threads() == before


def test_only_a_learner_without_chance_is_cut_into_shares(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    config = plain(made_config())
    for precision in ("float32", "bfloat16"):
        assert made_loop(made_run(tmp_path, replace(config, precision=precision))).step.shares == 2
    for change in (
        {"objective": replace(config.objective, drop_patches=0.5)},
        {"model": replace(config.model, dropout=0.1)},
        {"execution": replace(config.execution, recompute=True)},
    ):
        assert made_loop(made_run(tmp_path, replace(config, **change))).step.shares == 1


def test_the_optimiser_moves_a_colour_convolution_as_a_plain_step_does(tmp_path: Path) -> None:
    """Its gradient comes with the channels last, which a fused optimiser must not take for the order of the weights."""
    config = plain(made_config(steps=4, batch=16))
    backbone = BackboneConfig(blocks=(), width=8, norm_groups=4)
    config = replace(config, model=replace(config.model, backbone=backbone, patch_size=(1, 1)))
    loops = []
    for name, threads in (("one", 1), ("two", 2)):
        loop = made_loop(made_run(tmp_path / name, config))
        loops.append(replace(loop, step=replace(loop.step, shares=threads)))
        loops[-1].run()
    for ours, theirs in zip(*(loop.state.learner.parameters() for loop in loops), strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=1e-3)
