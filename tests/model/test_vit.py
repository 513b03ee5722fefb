"""The whole model: every cell of Table 8 with every pooling, the fast last block, and what invariance demands."""

import dataclasses

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.autograd import gradcheck
from torch.func import functional_call

from tests.tiny import POOLS, POSITIONS, close, hybrid_config, images_for, perturbed, resnet_config, vit_config
from vitrail import InputError, build
from vitrail.model.patches import patchify, unpatchify

SHAPES = {
    "rectangular patches": {"patch_size": (3, 8)},
    "square image": {"image_size": (16, 16)},
    "one channel": {"channels": 1},
    "five channels": {"channels": 5, "num_classes": 1},
    "no classes": {"num_classes": 0},
    "representation layer": {"representation_size": 10},
    "one block": {"depth": 1},
    "one head": {"num_heads": 1},
    "one patch": {"patch_size": (12, 16)},
    "mean with a class token": {"pool": "mean", "class_token": True},
    "attention pooling with a class token": {"pool": "attention", "class_token": True},
    "norm after the mean": {"pool": "mean", "norm_pooled": True},
    "erf": {"gelu": "erf"},
}


def gradients(output: torch.Tensor, model: nn.Module) -> dict[str, torch.Tensor]:
    weight = torch.randn(output.shape, generator=torch.Generator().manual_seed(3), dtype=output.dtype)
    names, parameters = zip(*model.named_parameters(), strict=True)
    values = torch.autograd.grad((output * weight).sum(), parameters, allow_unused=True)
    return dict(zip(names, values, strict=True))


def check_forward_and_trace(config) -> None:
    model, images = perturbed(config), images_for(config)
    logits = model(images)
    trace = model.trace(images)
    assert logits.shape == (2, config.num_classes or config.representation_size or config.dim)
    close(trace.logits, logits, 1e-5)
    close(trace.representation, model.features(images), 1e-5)
    gradients_of_pass, expected = gradients(logits, model), gradients(trace.logits, model)
    for name, gradient in gradients_of_pass.items():
        assert gradient is not None, f"{name} has no gradient"
        close(gradient, expected[name], 1e-5 * max(1, expected[name].abs().max().item()))


@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize(("positions", "placement"), POSITIONS)
def test_every_cell_of_table_8_runs_and_its_fast_form_equals_the_full_one(positions, placement, pool) -> None:
    """Outputs and the gradient of every parameter: `forward` leaves out what the pooled token does not need."""
    check_forward_and_trace(vit_config(positions=positions, position_placement=placement, pool=pool))


@pytest.mark.parametrize("settings", SHAPES.values(), ids=SHAPES)
def test_every_shape_runs_and_its_fast_form_equals_the_full_one(settings) -> None:
    check_forward_and_trace(vit_config(**settings))


def test_the_last_block_computes_one_query_only_when_the_class_token_is_pooled() -> None:
    lengths = []
    config = vit_config(depth=3)
    model = perturbed(config)
    for block in model.encoder.blocks:
        block.mlp.register_forward_hook(lambda *arguments: lengths.append(arguments[2].shape[1]))
    model(images_for(config))
    assert lengths == [13, 13, 1]


@pytest.mark.parametrize("positions", ["learned-1d", "relative"])
def test_the_fast_form_trains_like_the_full_one_without_dropout(positions) -> None:
    config = vit_config(positions=positions)
    model, images = perturbed(config).train(), images_for(config)
    close(model(images), model.trace(images).logits, 1e-5)


@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize("positions", ["learned-1d", "relative"])
def test_gradients_are_those_of_finite_differences(positions, pool) -> None:
    config = vit_config(
        dim=4, depth=2, num_heads=2, mlp_dim=6, image_size=(4, 8), num_classes=2, positions=positions, pool=pool
    )
    model, images = perturbed(config, by=0.4).double(), images_for(config, 1).double()
    weights = dict(model.named_parameters())
    names = [
        name
        for name in weights
        if name.endswith(("class_token", "table", "offsets", "probe", "qkv.bias", "norm1.weight", "mlp.out.bias"))
    ]

    def run(*values):
        return functional_call(model, weights | dict(zip(names, values, strict=True)), (images,))

    assert gradcheck(run, tuple(weights[name].detach().requires_grad_() for name in names))
    pixels = images.clone().requires_grad_()
    assert gradcheck(model, (pixels,), fast_mode=True)


@given(order=st.permutations(range(12)), kind=st.sampled_from(["learned-1d", "none"]))
def test_permuting_patches_with_their_positions_leaves_the_class_token_alone(order, kind) -> None:
    config = vit_config(positions=kind)
    model, images = perturbed(config), images_for(config)
    expected = model(images)
    shuffled = unpatchify(patchify(images, (4, 4))[:, order], (4, 4), (3, 4))
    if kind != "none":
        with torch.no_grad():
            table = model.embedding.positions.table
            table[1:] = table[1:][order]
    close(model(shuffled), expected, 1e-5)


@pytest.mark.parametrize("positions", ["learned-1d", "learned-2d", "sincos-2d", "relative"])
def test_positions_make_the_order_of_patches_matter(positions) -> None:
    config = vit_config(positions=positions)
    model, images = perturbed(config), images_for(config)
    shuffled = unpatchify(patchify(images, (4, 4)).flip(1), (4, 4), (3, 4))
    assert (model(shuffled) - model(images)).abs().max() > 1e-3


@pytest.mark.parametrize("config", [vit_config(), hybrid_config(), resnet_config()], ids=["vit", "hybrid", "resnet"])
def test_images_of_a_batch_do_not_see_each_other(config) -> None:
    model, images = perturbed(config), images_for(config, 3)
    close(model(images), torch.cat([model(image[None]) for image in images]), 1e-5)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_a_model_takes_other_precisions(dtype) -> None:
    config = vit_config()
    model, images = perturbed(config), images_for(config)
    expected = model(images)
    result = model.to(dtype)(images.to(dtype))
    assert result.dtype == dtype
    close(result, expected, 0.15 if dtype == torch.bfloat16 else 1e-5)


@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize("mode", [torch.no_grad, torch.enable_grad])
def test_a_model_runs_under_autocast(mode) -> None:
    config = vit_config()
    model, images = perturbed(config), images_for(config)
    expected = model(images)
    with mode(), torch.autocast("cpu", dtype=torch.bfloat16):
        close(model(images), expected, 0.15)


def test_the_state_dict_of_one_model_fits_another_of_the_same_config() -> None:
    config = vit_config(positions="sincos-2d")
    model, images = perturbed(config), images_for(config)
    other = build(config, seed=9).eval()
    other.load_state_dict(model.state_dict(), strict=True)
    close(other(images), model(images), 0)


def test_the_config_is_frozen() -> None:
    model = perturbed(vit_config())
    with pytest.raises(dataclasses.FrozenInstanceError):
        model.config.dim = 5


BAD_IMAGES = {
    "no batch axis": (torch.zeros(3, 12, 16), r"\(3, 12, 16\).*\(batch, 3, height, width\).*images\[None\]"),
    "whole numbers": (torch.zeros(1, 3, 12, 16, dtype=torch.uint8), r"uint8.*floating point.*/ 127\.5 - 1"),
    "wrong channels": (torch.zeros(1, 1, 12, 16), r"\(1, 1, 12, 16\).*1 channels.*3.*channels=1"),
    "channels last": (torch.zeros(1, 12, 16, 3), r"\(1, 12, 16, 3\).*12 channels.*3.*\(batch, 3, height, width\)"),
    "wrong size": (torch.zeros(1, 3, 16, 16), r"16x16.*12x16.*image_size=\(16, 16\)"),
}


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("call", ["__call__", "features", "trace"])
@pytest.mark.parametrize(("images", "message"), BAD_IMAGES.values(), ids=BAD_IMAGES)
def test_images_that_do_not_fit_are_refused_with_what_to_do(images, message, call) -> None:
    with pytest.raises(InputError, match=message):
        getattr(perturbed(vit_config()), call)(images)
