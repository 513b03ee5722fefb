import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch.autograd import gradcheck, gradgradcheck

from tests.reference import transformer
from tests.tiny import close
from vitrail.model.gelu import gelu, gelu_

KINDS = ["tanh", "erf"]
RANGE = np.concatenate([np.linspace(-12, 12, 2001), [-1e4, -50, 0, 50, 1e4]])


@pytest.mark.parametrize("kind", KINDS)
def test_gelu_is_its_formula(kind) -> None:
    close(gelu(torch.tensor(RANGE), kind), transformer.GELU[kind](RANGE), 1e-12)


# GELU is x times a share between 0 and 1, so its error is |x| times that of the share, counted here in units of 2^-23,
# the spacing of float32 at 1. A sigmoid is good to 1.3 of them. The vectorised erf is a polynomial, and another one for
# each vector width: of 2,000,001 points from -12 to 12 the worst has 2.5 units with SSE4.1 and AVX2, and 3.2 with
# AVX-512. An absolute bound would depend on the range that is tried.
UNITS = {"tanh": 2, "erf": 4}


@pytest.mark.parametrize("kind", KINDS)
def test_gelu_rounds_little_in_float32(kind) -> None:
    x = torch.tensor(np.concatenate([RANGE, np.linspace(-6, 6, 100_001)]), dtype=torch.float32)
    expected = torch.tensor(transformer.GELU[kind](x.double().numpy()))
    forms = {"ours": gelu(x, kind), "torch's": F.gelu(x, approximate="tanh" if kind == "tanh" else "none")}
    for name, values in forms.items():
        errors = (values.double() - expected).abs() / x.double().abs().clamp_min(1e-30)
        assert errors.max() <= UNITS[kind] * 2**-23, name


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
    saved = []
    x = torch.randn(8, 16, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: saved.append(t.data_ptr()) or t, lambda t: t):
        gelu(x, kind)
    assert saved == [x.data_ptr()]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(3, 5), (2, 3, 2**18 // 5)])
def test_gelu_in_place_is_gelu(kind, shape) -> None:
    x = torch.randn(shape)
    expected = transformer.GELU[kind](x.double().numpy())
    assert gelu_(x, kind) is x
    close(x, expected, 1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_gelu_works_under_function_transforms(kind) -> None:
    x = torch.randn(4, 3, dtype=torch.float64)
    slopes = torch.func.vmap(torch.func.grad(lambda value: gelu(value, kind).sum()))(x)
    nudged = (transformer.GELU[kind](x.numpy() + 1e-6) - transformer.GELU[kind](x.numpy() - 1e-6)) / 2e-6
    close(slopes, nudged, 1e-8)
