import math

import numpy as np
import pytest
import torch

from tests.reference import convolution as reference
from tests.tiny import close
from vitrail.model.convolution import StandardisedConv2d, max_pool_same, same_padding, standardise

WAYS = [("std-plus-eps", 1e-5), ("sqrt-var-eps", 1e-10), ("std-plus-eps", 0.1), ("sqrt-var-eps", 0.1)]
SIZES = [(8, 8), (7, 9), (8, 5), (1, 2)]


@pytest.mark.parametrize(("way", "eps"), WAYS)
def test_kernels_are_standardised_by_the_formula(way, eps) -> None:
    kernel = np.random.default_rng(0).normal(0.3, 2, size=(4, 3, 3, 2))
    close(standardise(torch.tensor(kernel), way, eps), reference.standardise(kernel, way, eps), 1e-12)


def test_the_two_formulas_differ() -> None:
    kernel = torch.randn(4, 3, 3, 3) * 0.01
    one, other = (standardise(kernel, way, 1e-5) for way in ("std-plus-eps", "sqrt-var-eps"))
    assert (one - other).abs().max() > 1e-3


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("kernel_size", "stride"), [(7, 2), (3, 2), (3, 1), (1, 1), (1, 2)])
@pytest.mark.parametrize("same", [True, False])
@pytest.mark.parametrize(("way", "eps"), WAYS[:2])
def test_a_standardised_convolution_is_its_loops(size, kernel_size, stride, same, way, eps) -> None:
    module = StandardisedConv2d(2, 3, kernel_size, stride=stride, same=same, standardisation=way, eps=eps).double()
    torch.nn.init.normal_(module.weight)
    images = torch.randn(2, 2, *size).double()
    half = (kernel_size - 1) // 2
    padded = (
        reference.pad_same(images.numpy(), kernel_size, stride)
        if same
        else np.pad(images.numpy(), [(0, 0), (0, 0), (half, half), (half, half)])
    )
    kernel = reference.standardise(module.weight.detach().numpy(), way, eps)
    result = module(images)
    assert result.shape[2:] == tuple(math.ceil(side / stride) for side in size)
    close(result, reference.convolve(padded, kernel, stride), 1e-10)


@pytest.mark.parametrize(
    ("side", "kernel_size", "stride", "amounts"),
    [
        (224, 7, 2, (2, 3)),
        (224, 3, 2, (0, 1)),
        (112, 3, 2, (0, 1)),
        (225, 7, 2, (3, 3)),
        (56, 3, 1, (1, 1)),
        (8, 1, 2, (0, 0)),
    ],
)
def test_same_padding_puts_the_odd_pixel_last(side, kernel_size, stride, amounts) -> None:
    assert same_padding(torch.empty(1, 1, side, 8), kernel_size, stride)[2:] == amounts
    assert same_padding(torch.empty(1, 1, 8, side), kernel_size, stride)[:2] == amounts


@pytest.mark.parametrize("size", SIZES)
def test_padding_is_never_the_maximum(size) -> None:
    images = -torch.rand(2, 3, *size).double() - 1
    expected = reference.max_pool(reference.pad_same(images.numpy(), 3, 2, value=-math.inf))
    close(max_pool_same(images), expected, 0)
