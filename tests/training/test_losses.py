"""Losses against torch's own, and against the definition in NumPy."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from vitrail.training.losses import sigmoid_cross_entropy, soft_targets, softmax_cross_entropy


@pytest.fixture
def made() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(6, 5, generator=generator)
    targets, partners = torch.randint(0, 5, (2, 6), generator=generator)
    return logits, targets, partners, torch.rand(6, generator=generator)


def test_without_mixing_softmax_cross_entropy_is_torchs(made: tuple[torch.Tensor, ...]) -> None:
    logits, targets, _, _ = made
    for smoothing in (0.0, 0.1):
        soft = soft_targets(targets, targets, torch.ones(6), 5, smoothing=smoothing)
        expected = F.cross_entropy(logits, targets, label_smoothing=smoothing)
        torch.testing.assert_close(softmax_cross_entropy(logits, soft), expected)


def test_a_mixed_image_has_the_mean_of_two_losses(made: tuple[torch.Tensor, ...]) -> None:
    logits, targets, partners, shares = made
    mixed = softmax_cross_entropy(logits, soft_targets(targets, partners, shares, 5))
    one, other = (F.cross_entropy(logits, classes, reduction="none") for classes in (targets, partners))
    torch.testing.assert_close(mixed, (shares * one + (1 - shares) * other).mean())


def test_class_weights_multiply_the_loss_of_their_images(made: tuple[torch.Tensor, ...]) -> None:
    logits, targets, _, _ = made
    weights = torch.tensor([0.5, 1.0, 2.0, 0.1, 1.4])
    found = softmax_cross_entropy(logits, soft_targets(targets, targets, torch.ones(6), 5), weights)
    each = F.cross_entropy(logits, targets, reduction="none")
    torch.testing.assert_close(found, (weights[targets] * each).mean())


def test_sigmoid_cross_entropy_is_its_definition(made: tuple[torch.Tensor, ...]) -> None:
    logits, targets, partners, shares = made
    soft = soft_targets(targets, partners, shares, 5)
    x, y = logits.double().numpy(), soft.double().numpy()
    chance = 1 / (1 + np.exp(-x))
    expected = -(y * np.log(chance) + (1 - y) * np.log(1 - chance)).sum(1).mean()
    assert sigmoid_cross_entropy(logits, soft).item() == pytest.approx(expected, rel=1e-6)
