import numpy as np
import pytest
import torch
import torch.nn.functional as F

from vitrail.base import products
from vitrail.base.processor import LIMIT
from vitrail.base.products import LEAST_WORK, Linear, linear, onednn_is_faster

SHAPES = [((64, 256), 256), ((8, 32, 160), 96), ((5, 300, 40), 200), ((700, 96), 33)]
"""Inputs and columns: layers that widen and that narrow, and sizes that no tile divides."""


@pytest.fixture
def with_onednn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let oneDNN compute, whatever the processor is."""
    monkeypatch.setattr(products, "onednn_is_faster", lambda: torch.backends.mkldnn.is_available())
    monkeypatch.setattr(products, "LEAST_WORK", 1)


def draw(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).requires_grad_()


@pytest.mark.usefixtures("with_onednn")
@pytest.mark.parametrize("biased", [True, False])
@pytest.mark.parametrize(("shape", "columns"), SHAPES)
def test_products_and_their_gradients_are_numpys(shape: tuple[int, ...], columns: int, biased: bool) -> None:
    x, weight, bias = draw(*shape), draw(columns, shape[-1], seed=1), draw(columns, seed=2)
    slopes = draw(*shape[:-1], columns, seed=3).detach()
    out = linear(x, weight, bias if biased else None)
    out.backward(slopes)
    rows, kernel, flat = (part.detach().double().numpy() for part in (x, weight, slopes))
    rows, flat = rows.reshape(-1, shape[-1]), flat.reshape(-1, columns)
    expected = rows @ kernel.T + (bias.detach().double().numpy() if biased else 0)
    np.testing.assert_allclose(out.detach().numpy().reshape(-1, columns), expected, atol=2e-4)
    assert x.grad is not None
    assert weight.grad is not None
    np.testing.assert_allclose(x.grad.numpy().reshape(rows.shape), flat @ kernel, atol=2e-4)
    np.testing.assert_allclose(weight.grad.numpy(), flat.T @ rows, atol=1e-3)
    assert weight.grad.stride() == weight.stride()
    if biased:
        assert bias.grad is not None
        np.testing.assert_allclose(bias.grad.numpy(), flat.sum(0), atol=1e-3)


@pytest.mark.usefixtures("with_onednn")
def test_inputs_that_lie_apart_in_memory_are_read_where_they_lie() -> None:
    tokens, weight = draw(4, 9, 64), draw(48, 64, seed=1)
    for x in (tokens[:, 3:], tokens[:, 0], tokens.transpose(0, 1), tokens[..., ::2]):
        kernel = weight[:, : x.shape[-1]]
        torch.testing.assert_close(linear(x, kernel), F.linear(x, kernel), atol=1e-5, rtol=1e-5)
        ours, torchs = (torch.autograd.grad(form(x, kernel).square().sum(), tokens)[0] for form in (linear, F.linear))
        torch.testing.assert_close(ours, torchs, atol=1e-3, rtol=1e-4)


@pytest.mark.usefixtures("with_onednn")
def test_gradients_have_gradients() -> None:
    x, weight = draw(6, 8), draw(5, 8, seed=1)
    (slope,) = torch.autograd.grad(linear(x, weight).pow(3).sum(), x, create_graph=True)
    (again,) = torch.autograd.grad(slope.sum(), weight)
    (torchs,) = torch.autograd.grad(F.linear(x, weight).pow(3).sum(), x, create_graph=True)
    torch.testing.assert_close(again, torch.autograd.grad(torchs.sum(), weight)[0], atol=1e-4, rtol=1e-4)


@pytest.mark.usefixtures("with_onednn")
def test_only_what_is_asked_for_gets_a_gradient() -> None:
    layer, x = Linear(16, 4), draw(3, 16)
    layer.weight.requires_grad_(False)
    layer(x).sum().backward()
    assert layer.weight.grad is None
    assert layer.bias.grad is not None
    with torch.inference_mode():
        assert not layer(x).requires_grad


@pytest.mark.usefixtures("with_onednn")
def test_other_types_and_autocast_are_torchs() -> None:
    x, layer = draw(4, 16), Linear(16, 8)
    assert layer.double()(x.double()).dtype == torch.float64
    with torch.autocast("cpu", torch.bfloat16):
        assert layer.float()(x).dtype == torch.bfloat16


def test_a_processor_whose_avx512_mkl_leaves_unused_takes_onednn(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = {}
    for vendor, flags, limit in (
        ("AuthenticAMD", "avx2 avx512f", ""),
        ("AuthenticAMD", "avx2 avx512f", "AVX512_CORE"),
        ("AuthenticAMD", "avx2 avx512f", "AVX2"),
        ("AuthenticAMD", "avx2", ""),
        ("GenuineIntel", "avx2 avx512f", ""),
    ):
        monkeypatch.setattr(products, "describe_processor", lambda v=vendor, f=flags: {"vendor_id": v, "flags": f})
        monkeypatch.setenv(LIMIT, limit)
        onednn_is_faster.cache_clear()
        answers[vendor, flags, limit] = onednn_is_faster()
    onednn_is_faster.cache_clear()
    libraries = torch.backends.mkl.is_available() and torch.backends.mkldnn.is_available()
    assert list(answers.values()) == [libraries, libraries, False, False, False]


def test_small_products_are_torchs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "onednn_is_faster", lambda: True)
    calls = []
    monkeypatch.setattr(products, "_onednn", lambda x, weight, bias: calls.append(x) or F.linear(x, weight, bias))
    with torch.no_grad():
        linear(torch.zeros(1, 64), torch.zeros(64, 64))
        assert not calls
        linear(torch.zeros(LEAST_WORK // 4096, 64), torch.zeros(64, 64))
        assert len(calls) == 1
