import itertools

import numpy as np
import pytest
import torch
from sklearn.metrics.pairwise import cosine_similarity

from tests.tiny import close
from vitrail.analysis.similarity import near_and_far, offset_similarity, position_similarity, shown_patches
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


def test_near_and_far_are_means_over_neighbours_and_over_patches_four_away() -> None:
    grid, cosines = (5, 7), torch.randn(35, 5, 7, dtype=torch.float64)
    near, far = [], []
    for patch, other in itertools.product(range(35), range(35)):
        down, right = abs(patch // 7 - other // 7), abs(patch % 7 - other % 7)
        near += [float(cosines[patch].flatten()[other])] * (down + right == 1)
        far += [float(cosines[patch].flatten()[other])] * (down**2 + right**2 >= 16)
    assert near_and_far(cosines, torch.arange(35)) == pytest.approx((np.mean(near), np.mean(far)))
    patches, _ = shown_patches(grid, most=3)
    assert near_and_far(cosines[patches], patches)[0] != pytest.approx(np.mean(near))
    assert np.isnan(near_and_far(torch.ones(4, 2, 2), torch.arange(4))[1])
