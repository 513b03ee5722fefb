import numpy as np
import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

from tests.reference import transformer
from tests.tiny import close
from vitrail.model.gelu import gelu, gelu_

KINDS = ["tanh", "erf"]
RANGE = np.concatenate([np.linspace(-12, 12, 2001), [-1e4, -50, 0, 50, 1e4]])


@pytest.mark.parametrize("kind", KINDS)
def test_gelu_is_its_formula(kind) -> None:
    close(gelu(torch.tensor(RANGE), kind), transformer.GELU[kind](RANGE), 1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_gelu_rounds_little_in_float32(kind) -> None:
    x = RANGE.astype(np.float32)
    wanted = transformer.GELU[kind](x.astype(np.float64))
    torch.testing.assert_close(gelu(torch.tensor(x), kind).double(), torch.tensor(wanted), rtol=5e-7, atol=5e-7)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_gelu_takes_half_precision(kind, dtype) -> None:
    x = torch.linspace(-5, 5, 101)
    result = gelu(x.to(dtype), kind)
    assert result.dtype == dtype
    close(result, transformer.GELU[kind](x.double().numpy()), 0.04)


def test_the_two_kinds_differ_by_up_to_5e_4() -> None:
    x = torch.linspace(-4, 4, 4001, dtype=torch.float64)
    difference = (gelu(x, "tanh") - gelu(x, "erf")).abs().max().item()
    assert 4.5e-4 < difference < 4.9e-4


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_of_gelu_are_those_of_finite_differences(kind) -> None:
    x = torch.linspace(-4, 4, 23, dtype=torch.float64, requires_grad=True)
    assert gradcheck(lambda value: gelu(value, kind), x)
    assert gradgradcheck(lambda value: gelu(value, kind), x)


@pytest.mark.parametrize("kind", KINDS)
def test_gelu_keeps_only_its_input_for_the_backward_pass(kind) -> None:
    kept = []
    x = torch.randn(8, 16, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: kept.append(t.data_ptr()) or t, lambda t: t):
        gelu(x, kind)
    assert kept == [x.data_ptr()]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(3, 5), (2, 3, 2**18 // 5)])
def test_gelu_in_place_is_gelu(kind, shape) -> None:
    x = torch.randn(shape)
    wanted = transformer.GELU[kind](x.double().numpy())
    assert gelu_(x, kind) is x
    close(x, wanted, 1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_gelu_works_under_function_transforms(kind) -> None:
    x = torch.randn(4, 3, dtype=torch.float64)
    slopes = torch.func.vmap(torch.func.grad(lambda value: gelu(value, kind).sum()))(x)
    nudged = (transformer.GELU[kind](x.numpy() + 1e-6) - transformer.GELU[kind](x.numpy() - 1e-6)) / 2e-6
    close(slopes, nudged, 1e-8)
