"""What later models have beside the paper's: each against its own formula in NumPy."""

import numpy as np
import pytest
import torch

import vitrail
from tests.reference import transformer
from tests.tiny import LATER, arrays, close, images_for, perturbed, vit_config
from vitrail import ConfigError, build
from vitrail.model.mlp import SwiGlu

CONFIGS = {name: vit_config(**settings) for name, settings in LATER.items()}


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_the_trace_gives_what_the_pass_gives_and_gradients_reach_every_parameter(config) -> None:
    model, images = perturbed(config), images_for(config)
    close(model(images), model.trace(images, attention="all").logits, 1e-5)
    model.train()(images).square().sum().backward()
    assert not [name for name, parameter in model.named_parameters() if not parameter.grad.any()]


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_every_parameter_has_a_layer_and_recomputing_gives_the_same_gradients(config) -> None:
    model, images = perturbed(config).train(), images_for(config)
    gradients = []
    for recompute in (False, True):
        model.recompute = recompute
        model.zero_grad()
        model(images).square().sum().backward()
        gradients.append([parameter.grad.clone() for parameter in model.parameters()])
    assert all(torch.equal(one, other) for one, other in zip(*gradients, strict=True))
    for name, _ in model.named_parameters():
        assert model.depth_of(name) >= 0
    assert set(model.matrices()) <= set(model.state_dict())


def test_further_tokens_stand_between_the_class_token_and_the_patches_without_positions() -> None:
    config = vit_config(registers=2, distillation_token=True, pool="distilled")
    model, images = perturbed(config), images_for(config)
    embedded, w = model.trace(images).embedded.detach(), arrays(model.embedding)
    plain = transformer.embed(
        transformer.patchify(images.numpy(), (4, 4)),
        w["projection.weight"].T,
        w["projection.bias"],
        w["class_token"],
        w["positions.table"],
    )
    further = np.concatenate([w["distillation_token"], w["registers"]])
    close(embedded[:, 1:4], np.repeat(further[None], 2, axis=0), 1e-6)
    close(embedded[:, [0, *range(4, 16)]], plain, 1e-5)
    assert config.num_prefix == 4


def test_layer_scale_multiplies_both_branches_and_starts_at_its_setting() -> None:
    config = vit_config(layer_scale=0.25, depth=1, norm_embedded=True)
    started = build(config, seed=0)
    assert torch.equal(started.encoder.blocks[0].scale2, torch.full((32,), 0.25))
    model, images = perturbed(config).double(), images_for(config).double()
    with torch.no_grad():
        trace, w = model.trace(images), arrays(model.encoder.blocks[0])
    for part, scale in (("attention.out", w["scale1"]), ("mlp.out", w["scale2"])):
        w[f"{part}.weight"] *= scale[:, None]
        w[f"{part}.bias"] *= scale
    close(trace.blocks[0], transformer.block(trace.embedded.numpy(), w, 4, 1e-6, "tanh")[0], 1e-8)


def test_swiglu_is_its_formula() -> None:
    mlp = SwiGlu(8, 12).double()
    w, x = arrays(mlp), torch.randn(2, 3, 8).double()
    gate = x.numpy() @ w["gate.weight"].T + w["gate.bias"]
    hidden = x.numpy() @ w["hidden.weight"].T + w["hidden.bias"]
    close(mlp(x), (gate / (1 + np.exp(-gate)) * hidden) @ w["out.weight"].T + w["out.bias"], 1e-10)


@pytest.mark.parametrize("settings", [{"pool": "class-and-mean", "registers": 2}, LATER["distilled"]])
def test_a_head_may_see_two_vectors(settings) -> None:
    model = perturbed(vit_config(**settings))
    encoded = model.encode(images_for(model.config)).output
    second = encoded[:, 1] if settings["pool"] == "distilled" else encoded[:, 3:].mean(dim=1)
    close(model.represent(encoded), torch.cat([encoded[:, 0], second], dim=1), 0)
    assert model.config.feature_width == model.head.linear.in_features == 64


def test_a_projection_has_no_bias_and_gives_the_features() -> None:
    model = perturbed(vit_config(projection_size=20))
    encoded = model.encode(images_for(model.config)).output
    close(model.represent(encoded), encoded[:, 0] @ model.head.projection.weight.T, 1e-5)
    assert model.head.projection.bias is None
    assert model.config.adapted(num_classes=3).projection_size is None


def test_trimmed_pixels_do_not_matter() -> None:
    config = vit_config(trim=True, image_size=(13, 18))
    model, images = perturbed(config), images_for(config)
    assert config.grid == (3, 4)
    changed = images.clone()
    changed[:, :, 12:] = 7.0
    changed[:, :, :, 16:] = -7.0
    assert torch.equal(model(changed), model(images))
    close(model(images), perturbed(vit_config())(images[:, :, :12, :16]), 1e-6)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_images_of_another_type_are_converted(dtype) -> None:
    model = perturbed(vit_config()).to(dtype)
    assert model(images_for(model.config)).dtype == dtype


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_a_file_is_loaded_and_run_in_another_type(config, dtype, tmp_path) -> None:
    """Tables that are computed and not stored, as of rotary positions, meet weights of that type."""
    model, images = perturbed(config), images_for(config)
    loaded = vitrail.load(vitrail.save(model, tmp_path / "x.safetensors"), dtype=dtype)
    outputs = loaded(images)
    assert outputs.dtype == dtype
    close(outputs.float(), model(images), 0.1 if dtype == torch.bfloat16 else 1e-5)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"pool": "distilled"}, "needs a distillation token, but distillation_token is False"),
        ({"pool": "mean", "distillation_token": True}, "follows a class token, but class_token is False"),
        ({"pool": "class-and-mean", "class_token": False}, "class-and-mean pooling needs a class token"),
        ({"representation_size": 4, "projection_size": 4}, "at most one of the two layers"),
        ({"registers": 2, "position_placement": "every-layer"}, "know the class token and patches only"),
        ({"registers": -1}, "registers is -1"),
        ({"projection_size": 0}, "projection_size is 0"),
        ({"mlp": "swiglu2"}, "one of gelu, swiglu"),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_settings_that_do_not_go_together_are_refused(settings, message) -> None:
    with pytest.raises(ConfigError, match=message):
        vit_config(**settings)
