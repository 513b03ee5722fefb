"""Which patches are corrupted: exactly so many of each image, by (seed, epoch, image) alone."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.reference import masked_patch as reference
from vitrail.base.errors import ConfigError
from vitrail.model.corruption import Corruption, corrupt
from vitrail.selfsup.masking import corruption_counts, draw_corruption, draw_noise, hidden_count, image_keys


def _keys(indices: list[int], positions: list[int], *, seed: int = 3, images: int = 10) -> np.ndarray:
    return image_keys(
        seed, "corruption", indices=torch.tensor(indices), positions=torch.tensor(positions), images=images
    )


@given(patches=st.integers(4, 400), rate=st.sampled_from([0.15, 0.25, 0.5, 0.75]))
def test_counts_are_those_of_the_paper_with_the_written_rounding(patches: int, rate: float) -> None:
    counts = corruption_counts(patches, rate)
    assert counts.corrupted == round(rate * patches)
    assert (counts.masked, counts.replaced, counts.left) == reference.shares(counts.corrupted)


def test_a_grid_of_the_paper_has_78_masked_10_exchanged_and_10_left() -> None:
    counts = corruption_counts(196, 0.5)
    assert (counts.corrupted, counts.masked, counts.replaced, counts.left) == (98, 78, 10, 10)


@pytest.mark.parametrize(("patches", "rate", "what"), [(16, 0.01, "no patch of 16"), (16, 0.99, "every patch of 16")])
def test_a_rate_that_hides_nothing_or_everything_is_refused(patches: int, rate: float, what: str) -> None:
    with pytest.raises(ConfigError, match=what):
        hidden_count(patches, rate)


def test_each_image_has_exactly_so_many_different_patches_and_sources_are_others() -> None:
    drawn = draw_corruption(_keys(list(range(200)), list(range(200)), images=1000), 16, 0.5)
    assert drawn.corrupted.shape == (200, 8)
    assert all(len(set(row)) == 8 and min(row) >= 0 and max(row) < 16 for row in drawn.corrupted.tolist())
    assert torch.equal(torch.cat([drawn.masked, drawn.replaced], dim=1), drawn.corrupted[:, :7])
    assert (drawn.sources != drawn.replaced).all()
    assert set(drawn.sources.flatten().tolist()) == set(range(16))
    counts = torch.bincount(drawn.corrupted.flatten(), minlength=16)
    assert counts.min() > 70  # of 100 on average, with a deviation of 7
    assert counts.max() < 130


def test_draws_depend_on_seed_epoch_and_image_and_not_on_the_batch() -> None:
    both = draw_corruption(_keys([4, 7], [24, 11]), 16, 0.5).corrupted
    assert torch.equal(draw_corruption(_keys([7], [18]), 16, 0.5).corrupted, both[1:])  # the same epoch, elsewhere
    assert not torch.equal(draw_corruption(_keys([7], [21]), 16, 0.5).corrupted, both[1:])  # the next epoch
    assert not torch.equal(draw_corruption(_keys([7], [11], seed=4), 16, 0.5).corrupted, both[1:])


def test_noise_is_uniform_and_of_each_image_alone() -> None:
    noise = draw_noise(_keys(list(range(100)), list(range(100))), 64)
    assert noise.min() >= 0
    assert noise.max() < 1
    assert abs(noise.mean() - 0.5) < 0.02
    assert torch.equal(draw_noise(_keys([7], [7]), 64), noise[7:8])


def test_corruption_of_embeddings_is_numpys() -> None:
    generator = torch.Generator().manual_seed(0)
    patches, mask = torch.randn(3, 16, 5, generator=generator), torch.randn(1, 5, generator=generator)
    drawn = draw_corruption(_keys([1, 2, 3], [1, 2, 3]), 16, 0.5)
    corruption = Corruption(mask=mask, masked=drawn.masked, replaced=drawn.replaced, sources=drawn.sources)
    found = corrupt(patches, corruption)
    places = (drawn.masked.numpy(), drawn.replaced.numpy(), drawn.sources.numpy())
    assert np.array_equal(found.numpy(), reference.corrupt(patches.numpy(), mask[0].numpy(), *places))
