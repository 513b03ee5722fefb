"""Which form is used when; test_attention.py, test_gelu.py and test_vit.py test that the forms agree."""

import pytest
import torch

from tests.tiny import images_for, perturbed, vit_config
from vitrail.model import kernels
from vitrail.model.attention import attention_map
from vitrail.model.gelu import gelu
from vitrail.model.mlp import Mlp


@pytest.mark.parametrize("kind", ["tanh", "erf"])
@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_inference_reuses_the_hidden_buffer_and_gives_the_same_bits(kind, mode) -> None:
    hidden = torch.randn(3, 7, 24)
    expected = gelu(hidden.clone(), kind)
    with mode():
        activated = kernels.activate(hidden, kind)
    assert activated is hidden
    assert torch.equal(activated, expected)


CASES = {
    "with gradients": (lambda: torch.randn(3, 8), True),
    "half precision": (lambda: torch.randn(3, 8).bfloat16(), False),
    "not contiguous": (lambda: torch.randn(8, 3).mT, False),
    "without memory": (lambda: torch.empty(3, 8, device="meta"), False),
}


@pytest.mark.parametrize(("make", "grad"), CASES.values(), ids=CASES)
def test_elsewhere_the_input_of_gelu_is_left_alone(make, grad) -> None:
    hidden = make()
    before = hidden.clone()
    with torch.set_grad_enabled(grad):
        assert kernels.activate(hidden, "tanh") is not hidden
    assert hidden.is_meta or torch.equal(hidden, before)


def test_the_mlp_does_not_change_its_input() -> None:
    tokens = torch.randn(2, 5, 16)
    before = tokens.clone()
    with torch.no_grad():
        Mlp(16, 24).eval()(tokens)
    assert torch.equal(tokens, before)


@pytest.mark.parametrize("settings", [{}, {"pool": "mean"}, {"pool": "attention", "gelu": "erf"}])
def test_outputs_do_not_depend_on_whether_gradients_are_on(settings) -> None:
    config = vit_config(depth=3, **settings)
    model, images = perturbed(config), images_for(config, 3)
    expected = model(images)
    with torch.inference_mode():
        assert torch.equal(model(images), expected)


@pytest.mark.parametrize("biased", [False, True])
def test_gradients_of_attention_in_half_precision_are_those_of_float32(biased: bool) -> None:
    draw = torch.Generator().manual_seed(0)
    half = [torch.randn(2, 3, 7, 8, generator=draw).bfloat16().requires_grad_() for _ in range(3)]
    bias = torch.randn(2, 3, 7, 7, generator=draw).bfloat16() if biased else None
    slopes = torch.randn(2, 3, 7, 8, generator=draw).bfloat16()
    whole = [part.detach().float().requires_grad_() for part in half]
    with torch.autocast("cpu", torch.bfloat16):
        mixed = kernels.attend(*half, bias)
    mixed.backward(slopes)
    expected = attention_map(whole[0], whole[1], None if bias is None else bias.float()) @ whole[2]
    expected.backward(slopes.float())
    assert mixed.dtype == torch.bfloat16
    torch.testing.assert_close(mixed.float(), expected, rtol=8e-3, atol=1e-6)  # one rounding to 8 bits
    for ours, exact in zip(half, whole, strict=True):
        assert ours.grad is not None
        assert exact.grad is not None
        torch.testing.assert_close(ours.grad.float(), exact.grad, rtol=8e-3, atol=1e-5)
