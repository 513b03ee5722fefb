"""Training faster: patches left out, smaller images first; the model knows where its patches belong."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tests.training.making import made_config, made_loop, made_run, plain
from vitrail.base.errors import CheckpointError, ConfigError
from vitrail.model.build import create
from vitrail.model.embedding import pick, random_patches
from vitrail.model.positions import resize_positions
from vitrail.model.vit import ViT
from vitrail.runs.config import Stage
from vitrail.training.state import Progress


@pytest.fixture
def model() -> ViT:
    made = create("Ti/16", image_size=64, num_classes=3, depth=2, seed=0)
    assert isinstance(made, ViT)
    return made.train()


def test_keeping_all_patches_in_another_order_changes_nothing(model: ViT) -> None:
    """Attention has no order of its own: positions travel with their patches."""
    torch.nn.init.normal_(model.head.linear.weight)  # type: ignore[union-attr]
    images = torch.randn(2, 3, 64, 64)
    shuffled = torch.stack([torch.randperm(16) for _ in range(2)])
    encoded = model.encode(images, kept=shuffled)
    assert encoded.kept is shuffled
    torch.testing.assert_close(model.head(encoded.output), model(images), rtol=1e-5, atol=1e-5)


def test_each_image_keeps_its_own_patches_without_repeats() -> None:
    pixels = torch.arange(2 * 16, dtype=torch.float32).reshape(2, 16, 1)
    kept = random_patches(2, 16, 0.75)
    assert kept.shape == (2, 4)
    assert all(len(set(row.tolist())) == 4 for row in kept)
    assert torch.equal(pick(pixels, kept)[1, :, 0], 16 + kept[1].float())


def test_at_another_size_positions_are_interpolated_on_the_way(model: ViT) -> None:
    torch.nn.init.normal_(model.head.linear.weight)  # type: ignore[union-attr]
    images = torch.randn(2, 3, 32, 32)
    small = create("Ti/16", image_size=32, num_classes=3, depth=2)
    state = model.state_dict()
    table = resize_positions(state["embedding.positions.table"], (4, 4), (2, 2))
    small.load_state_dict(state | {"embedding.positions.table": table})
    torch.testing.assert_close(model(images, any_size=True), small(images), rtol=1e-5, atol=1e-5)


def test_positions_inside_the_encoder_are_refused() -> None:
    relative = create("Ti/16", image_size=64, num_classes=3, depth=2, positions="relative")
    with pytest.raises(ConfigError, match="belong to one full grid"):
        relative(torch.randn(1, 3, 64, 64), drop_patches=0.5)


def test_images_grow_where_a_stage_ends(tmp_path: Path) -> None:
    config = replace(made_config(), stages=(Stage(until=0.4, image_size=(4, 4)),))
    loop = made_loop(made_run(tmp_path, config))
    sizes = [tuple(batch.images.shape[2:]) for batch in loop.batches(0)]
    assert sizes == [(4, 4)] * 4 + [(8, 8)] * 6
    assert [tuple(batch.images.shape[2:]) for batch in loop.batches(3)] == [(4, 4)] + [(8, 8)] * 6
    loop.run()
    assert loop.state.finite()


def test_a_checkpoint_of_another_model_lists_every_difference(tmp_path: Path) -> None:
    config = made_config()
    loop = made_loop(made_run(tmp_path / "one", config))
    deeper = replace(config, model=replace(config.model, depth=3, mlp_dim=32))
    other = made_loop(made_run(tmp_path / "other", deeper))
    with pytest.raises(CheckpointError, match=r"encoder\.blocks\.2.*is surplus.*mlp\.hidden\.weight of \(32, 8\)"):
        loop.state.restore(other.state.tensors(), Progress())


@pytest.mark.compiled
@pytest.mark.filterwarnings("ignore")  # torch's own compiler warns about torch
def test_a_compiled_run_is_the_same_within_rounding(tmp_path: Path) -> None:
    losses = []
    for compiled in (False, True):
        config = plain(made_config())
        config = replace(config, execution=replace(config.execution, compiled=compiled))
        loop = made_loop(made_run(tmp_path / str(compiled), config))
        taken = [loop.take(batch, 1e-3) for batch, _ in zip(loop.batches(0), range(3), strict=False)]
        losses.append([step.loss for step in taken if step is not None])
    assert len(losses[1]) == 3
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)
