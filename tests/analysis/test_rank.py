import numpy as np
import pytest
import torch

from vitrail.analysis.rank import effective_rank


@pytest.mark.parametrize("directions", [1, 2, 7])
def test_equal_directions_count_as_many_as_they_are(directions) -> None:
    """Rows of +-e_i have r equal singular values, and a mean of 0."""
    rows = torch.cat([torch.eye(12)[:directions], -torch.eye(12)[:directions]])
    assert effective_rank(5 * rows + 3) == pytest.approx(directions, abs=1e-6)


def test_two_singular_values_have_the_entropy_of_their_shares() -> None:
    rows = torch.tensor([[3.0, 0], [-3, 0], [0, 1], [0, -1]])
    shares = np.array([0.75, 0.25])
    assert effective_rank(rows) == pytest.approx(np.exp(-(shares * np.log(shares)).sum()))


def test_rows_that_are_all_the_same_have_no_directions() -> None:
    assert effective_rank(torch.full((9, 4), 0.3)) == 0
