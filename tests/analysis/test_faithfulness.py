import numpy as np
import pytest
import torch

from tests.tiny import close
from vitrail.analysis.cells import Cells
from vitrail.analysis.faithfulness import measure, order_of, random_order

CELLS = Cells(image_size=(4, 4), grid=(4, 4))


def bright(batch: torch.Tensor) -> torch.Tensor:
    """A network whose one probability is the share of white pixels."""
    return (batch == 255).double().mean(dim=(1, 2, 3))[:, None]


def test_deletion_and_insertion_of_a_network_that_counts_are_straight_lines() -> None:
    pixels = torch.full((1, 4, 4), 255, dtype=torch.uint8)
    curves = measure(bright, pixels, 0, torch.arange(16), cells=CELLS, colour=(0,), points=5, batch=3)
    np.testing.assert_allclose(curves.shares, [0, 0.25, 0.5, 0.75, 1])
    np.testing.assert_allclose(curves.deletion, [1, 0.75, 0.5, 0.25, 0])
    np.testing.assert_allclose(curves.insertion, [0, 0.25, 0.5, 0.75, 1])
    assert curves.deletion_area == curves.insertion_area == pytest.approx(0.5)


def test_the_area_is_that_of_the_step_at_which_what_counts_is_covered() -> None:
    """Only cell 5 counts: it is the third to go, so the probability is 1 until 2/16 and 0 from 3/16 on."""
    pixels = torch.zeros(1, 4, 4, dtype=torch.uint8)
    pixels[0, 1, 1] = 255
    order = torch.tensor([0, 1, 5, *(cell for cell in range(16) if cell not in (0, 1, 5))])
    curves = measure(lambda batch: 16 * bright(batch), pixels, 0, order, cells=CELLS, colour=(0,), points=99)
    assert len(curves.shares) == 17
    assert curves.deletion_area == pytest.approx(2.5 / 16)
    assert curves.insertion_area == pytest.approx(1 - 2.5 / 16)


def test_cells_are_ordered_by_value_and_equal_ones_at_random_but_alike() -> None:
    values = torch.tensor([0.0, 3.0, 0.0, 1.0, 0.0, 0.0])
    orders = [order_of(values, 0, "image", number) for number in range(20)]
    assert all(order[:2].tolist() == [1, 3] for order in orders)
    assert all(sorted(order.tolist()) == list(range(6)) for order in orders)
    assert len({tuple(order.tolist()) for order in orders}) > 5
    assert torch.equal(orders[4], order_of(values, 0, "image", 4))
    close(random_order(9, 0, 1), random_order(9, 0, 1), 0)
    assert sorted(random_order(9, 0, 1).tolist()) == list(range(9))
