"""Polyak averaging against its recurrence."""

import torch
from torch import nn

from vitrail.training.averaging import Average


def test_the_average_follows_its_recurrence() -> None:
    torch.manual_seed(0)
    model = nn.Linear(3, 2)
    average = Average(model, 0.9)
    expected = model.weight.detach().double().clone()
    for step in range(60):
        with torch.no_grad():
            model.weight.add_(torch.randn(2, 3))
        average.update(step)
        factor = min(0.9, (1 + step) / (10 + step))
        expected = factor * expected + (1 - factor) * model.weight.detach().double()
    torch.testing.assert_close(average.shadow["weight"].double(), expected, rtol=1e-4, atol=1e-5)


def test_the_model_has_its_own_bits_back_afterwards() -> None:
    model = nn.Linear(3, 2)
    average = Average(model, 0.9)
    with torch.no_grad():
        model.weight.add_(1)
    own = model.weight.detach().clone()
    with average.applied():
        torch.testing.assert_close(model.weight.detach(), own - 1)
    assert torch.equal(model.weight.detach(), own)
