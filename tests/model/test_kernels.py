"""Which form is used when; test_attention.py, test_gelu.py and test_vit.py test that the forms agree."""

import pytest
import torch

from tests.tiny import images_for, perturbed, vit_config
from vitrail.model import kernels
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
