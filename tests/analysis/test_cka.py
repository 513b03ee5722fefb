import numpy as np
import pytest
import torch

from tests.reference.inside import unbiased_cka
from tests.tiny import close
from vitrail import InputError
from vitrail.analysis.cka import cka


def test_it_is_the_sum_over_all_quadruples_of_images() -> None:
    """The unbiased estimate is a mean over quadruples of different images, written out in the reference."""
    first, second = torch.randn(7, 5), torch.randn(7, 9)
    second[:, :3] += 2 * first[:, :3]
    wanted = [[unbiased_cka(a.double().numpy(), b.double().numpy()) for b in (first, second)] for a in (first, second)]
    close(cka([first, second], [first, second]), np.array(wanted), 1e-9)


def test_a_rotation_a_scale_and_a_shift_change_nothing_and_other_features_are_unlike() -> None:
    features = torch.randn(60, 16, dtype=torch.float64)
    rotation, _ = torch.linalg.qr(torch.randn(16, 16, dtype=torch.float64))
    moved = 3.7 * features @ rotation + 5
    close(cka([features], [moved]), torch.ones(1, 1), 1e-9)
    assert cka([features], [features * torch.logspace(-3, 3, 16)])[0, 0] < 0.9


def test_unrelated_features_are_0_on_average_even_where_they_are_wider_than_there_are_images() -> None:
    """The plain formula would give more than 0.8 here."""
    values = [float(cka([torch.randn(24, 200)], [torch.randn(24, 200)])) for _ in range(40)]
    assert abs(np.mean(values)) < 3 * np.std(values) / 40**0.5 + 1e-3
    assert np.std(values) < 0.2


def test_a_constant_layer_has_none_and_three_images_are_too_few() -> None:
    assert cka([torch.ones(6, 3)], [torch.randn(6, 3)]).isnan().all()
    with pytest.raises(InputError, match="CKA needs at least 4 images, but there are 3"):
        cka([torch.randn(3, 2)], [torch.randn(3, 2)])
