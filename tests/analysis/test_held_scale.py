import pytest
import torch
import torch.nn.functional as F

from tests.tiny import LATER, close, hybrid_config, images_for, perturbed, vit_config
from vitrail.analysis.held_scale import HeldScale, held_layer_norm

CONFIGS = [vit_config(), vit_config(pool="mean"), hybrid_config(), vit_config(**LATER["CLIP"])]


@pytest.mark.parametrize("config", CONFIGS)
def test_the_outputs_of_a_network_are_the_same(config) -> None:
    model, images = perturbed(config, by=0.3).double(), images_for(config).double()
    with HeldScale():
        held = model.encode(images).output
    close(held, model.encode(images).output, 1e-10)


def test_the_gradient_is_that_of_a_linear_map() -> None:
    """With the deviation s a constant, y = w (x - mean x) / s + b, so that dx = (w dy - mean(w dy)) / s."""
    tokens, slope = torch.randn(2, 3, 8).double(), torch.randn(2, 3, 8).double()
    weight, bias = torch.randn(8).double(), torch.randn(8).double()
    tokens.requires_grad_()
    with HeldScale():
        normed = F.layer_norm(tokens, (8,), weight, bias, 1e-6)
    (gradient,) = torch.autograd.grad((normed * slope).sum(), tokens)
    deviation = (tokens.detach().var(dim=-1, correction=0, keepdim=True) + 1e-6).sqrt()
    close(gradient, (weight * slope - (weight * slope).mean(dim=-1, keepdim=True)) / deviation, 1e-12)
    close(normed, F.layer_norm(tokens, (8,), weight, bias, 1e-6), 1e-12)


def test_a_token_times_its_gradient_is_nothing_for_a_layer_norm_and_all_of_the_output_with_the_scale_held() -> None:
    weight, reading = torch.randn(8).double(), torch.randn(8).double()
    token = torch.randn(8).double().requires_grad_()
    shares = []
    for norm in (F.layer_norm, held_layer_norm):
        output = norm(token, (8,), weight, None, 1e-12) @ reading
        (gradient,) = torch.autograd.grad(output, token)
        shares.append(float(token.detach() @ gradient / output.detach()))
    assert shares == pytest.approx([0, 1], abs=1e-9)


def test_other_functions_and_what_comes_after_are_left_alone() -> None:
    token = torch.randn(8, requires_grad=True)
    with HeldScale():
        close(F.gelu(token), torch.nn.GELU()(token.detach()), 1e-7)
    output = F.layer_norm(token, (8,)) @ torch.arange(8.0)
    (gradient,) = torch.autograd.grad(output, token)
    assert abs(float(token.detach() @ gradient)) < 1e-3
