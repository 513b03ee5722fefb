import numpy as np
import pytest
import torch
from sklearn.metrics.pairwise import cosine_similarity

from tests.tiny import close
from vitrail.analysis.similarity import offset_similarity, position_similarity, shown_patches
from vitrail.model.positions import sincos_2d


def test_similarities_are_scikit_learns_cosines_on_the_grid_of_patches() -> None:
    table, (every, shape) = torch.randn(12, 8), shown_patches((3, 4))
    assert shape == (3, 4)
    close(position_similarity(table, (3, 4), every).flatten(1), cosine_similarity(table.double().numpy()), 1e-6)


@pytest.mark.parametrize(("grid", "shown", "first"), [((37, 37), (13, 13), [0, 3, 6]), ((16, 20), (16, 10), [0, 2, 4])])
def test_of_a_large_grid_every_second_or_third_patch_is_shown(grid, shown, first) -> None:
    patches, shape = shown_patches(grid)
    assert shape == shown
    assert patches[:3].tolist() == first
    assert patches[shape[1]] == grid[1] * (first[1] if grid[0] > 16 else 1)


def test_sine_cosine_positions_are_most_alike_in_their_own_row_and_column() -> None:
    """Their similarity is the mean of cosines of differences: symmetric, 1 at the patch itself."""
    patches, _ = shown_patches((5, 6))
    grids = position_similarity(sincos_2d(64, (5, 6), class_entry=False), (5, 6), patches)
    close(torch.stack([grids[place].flatten()[place] for place in range(30)]), torch.ones(30), 1e-6)
    close(grids.flatten(1), grids.flatten(1).T, 1e-12)


def test_relative_positions_compare_offsets_of_the_sequence_with_none() -> None:
    offsets, patches = torch.randn(2 * 13 - 1, 8), torch.tensor([0, 7])  # 12 patches and a class token
    grids = offset_similarity(offsets, (3, 4), patches)
    cosines = cosine_similarity(offsets.double().numpy(), offsets[12:13].double().numpy())[:, 0]
    for number, query in enumerate(patches.tolist()):
        wanted = np.array([cosines[query - key + 12] for key in range(12)]).reshape(3, 4)
        close(grids[number], wanted, 1e-6)
    assert grids[1, 1, 3] == pytest.approx(1)
