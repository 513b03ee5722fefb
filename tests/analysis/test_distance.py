import numpy as np
import pytest
import torch
from scipy.spatial.distance import cdist
from scipy.stats import entropy

from tests.tiny import close
from vitrail.analysis.distance import attention_distance, patch_distances
from vitrail.analysis.entropy import attention_entropy

GRID, CELL = (3, 5), (16, 8)


def centres(grid, cell) -> np.ndarray:
    rows, columns = np.indices(grid)
    return np.stack([(rows.ravel() + 0.5) * cell[0], (columns.ravel() + 0.5) * cell[1]], axis=1)


def test_distances_are_those_between_the_centres_of_patches_in_pixels() -> None:
    wanted = cdist(centres(GRID, CELL), centres(GRID, CELL))
    close(patch_distances(GRID, CELL), wanted, 1e-4)


@pytest.mark.parametrize("prefix", [0, 1, 5])
def test_uniform_attention_has_the_mean_distance_of_all_pairs(prefix) -> None:
    """On a line of n patches the mean of |i - j| over all pairs is (n^2 - 1) / (3 n)."""
    n = 12
    uniform = torch.full((2, 3, n + prefix, n + prefix), 1 / (n + prefix))
    distance = attention_distance(uniform, patch_distances((1, n), (16, 16)))
    close(distance, torch.full((2, 3), 16 * (n**2 - 1) / (3 * n)), 1e-4)
    plane = torch.full((1, 1, 15 + prefix, 15 + prefix), 1 / (15 + prefix))
    close(attention_distance(plane, patch_distances(GRID, CELL))[0, 0], cdist(*[centres(GRID, CELL)] * 2).mean(), 1e-4)


def test_attention_to_one_patch_has_its_distance_and_to_itself_none() -> None:
    n, shift = 15, 2
    onto = torch.eye(n)[None, None]
    distances = patch_distances(GRID, CELL)
    close(attention_distance(onto, distances), torch.zeros(1, 1), 0)
    rolled = torch.eye(n)[:, torch.arange(n).roll(shift)][None, None]  # query q attends to key q + 2, round the corner
    wanted = np.linalg.norm(centres(GRID, CELL)[np.roll(np.arange(n), -shift)] - centres(GRID, CELL), axis=1).mean()
    close(attention_distance(rolled, distances)[0, 0], wanted, 1e-4)


def test_what_goes_to_tokens_without_a_place_does_not_count() -> None:
    attention = torch.rand(2, 4, 17, 17, dtype=torch.float64).softmax(dim=-1)
    patches = attention[:, :, 2:, 2:].numpy()
    patches = patches / patches.sum(axis=-1, keepdims=True)
    wanted = (patches * cdist(*[centres(GRID, CELL)] * 2)).sum(axis=-1).mean(axis=-1)
    close(attention_distance(attention, patch_distances(GRID, CELL)), wanted, 1e-5)


def test_entropy_is_0_for_one_token_and_the_logarithm_of_their_number_for_all() -> None:
    close(attention_entropy(torch.eye(9)[None, None]), torch.zeros(1, 1), 0)
    close(attention_entropy(torch.full((1, 2, 9, 9), 1 / 9)), torch.full((1, 2), np.log(9)), 1e-6)
    attention = torch.randn(2, 3, 7, 7).softmax(dim=-1)
    close(attention_entropy(attention), entropy(attention.double().numpy(), axis=-1).mean(axis=-1), 1e-5)
