"""One step: micro-batches add up to the batch, and what is not a number moves nothing."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tests.training.making import assert_same, made_config, made_loop, made_run, plain, weights
from vitrail.runs.execution import Execution


def _after_steps(folder: Path, micro_batch: int | None, **changes) -> dict[str, torch.Tensor]:
    config = replace(plain(made_config(**changes)), execution=Execution(micro_batch=micro_batch, device="cpu"))
    loop = made_loop(made_run(folder, config))
    loop.run()
    return weights(loop)


@pytest.mark.parametrize("micro_batch", [2, 4, 6])
def test_accumulated_gradients_are_those_of_the_large_batch(tmp_path: Path, micro_batch: int) -> None:
    """One step from the same weights, so that rounding has no time to grow."""
    loops = [
        made_loop(made_run(tmp_path / str(size), replace(plain(made_config()), execution=Execution(micro_batch=size))))
        for size in (8, micro_batch)
    ]
    batch = next(loops[0].batches(0))
    taken = [loop.take(batch, 0.0) for loop in loops]
    assert taken[0] is not None
    assert taken[1] is not None
    assert taken[0].loss == pytest.approx(taken[1].loss, rel=1e-6)
    for one, other in zip(loops[0].state.learner.parameters(), loops[1].state.learner.parameters(), strict=True):
        assert one.grad is not None
        torch.testing.assert_close(one.grad, other.grad, rtol=1e-5, atol=1e-6)


def test_recomputing_activations_changes_no_bit(tmp_path: Path) -> None:
    config = made_config()
    loops = []
    for recompute in (False, True):
        execution = Execution(recompute=recompute, device="cpu")
        loops.append(made_loop(made_run(tmp_path / str(recompute), replace(config, execution=execution))))
        loops[-1].run()
    assert_same(weights(loops[0]), weights(loops[1]))


@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
def test_half_precision_learns_the_same_within_its_own_rounding(tmp_path: Path, precision: str) -> None:
    losses = []
    for kind in ("float32", precision):
        loop = made_loop(made_run(tmp_path / kind, replace(plain(made_config()), precision=kind)))
        taken = loop.take(next(loop.batches(0)), 1e-3)
        assert taken is not None
        assert taken.good
        losses.append(taken.loss)
    assert losses[0] == pytest.approx(losses[1], rel=0.02)


def test_an_overflow_of_float16_halves_the_scale_and_moves_nothing(tmp_path: Path) -> None:
    loop = made_loop(made_run(tmp_path, replace(plain(made_config()), precision="float16")))
    loop.state.progress.loss_scale = 2.0**120
    before = weights(loop)
    taken = loop.take(next(loop.batches(0)), 1e-3)
    assert taken is not None
    assert taken.overflow
    assert loop.state.progress.loss_scale == 2.0**119
    assert_same({name: value for name, value in weights(loop).items() if name in before}, before)
