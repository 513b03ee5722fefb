import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.reference import convolution as reference
from tests.tiny import POOLS, arrays, close, hybrid_config, images_for, perturbed, vit_config
from vitrail import BackboneConfig, ConfigError, InputError, create
from vitrail.model.convolution import max_pool_same
from vitrail.model.trace import Recorder


def conv(x, kernel, stride=1):
    size = kernel.shape[2]
    return reference.convolve(
        reference.pad_same(x, size, stride), reference.standardise(kernel, "std-plus-eps", 1e-5), stride
    )


def norm(x, w, name):
    return reference.group_norm(x, w[f"{name}.weight"], w[f"{name}.bias"], 4, 1e-6)


def relu(x):
    return np.maximum(x, 0)


def unit(x, w, stride):
    """A bottleneck, v1: norm and ReLU after each convolution."""
    shortcut = x
    if "shortcut.conv.weight" in w:
        shortcut = norm(conv(x, w["shortcut.conv.weight"], stride), w, "shortcut.norm")
    y = relu(norm(conv(x, w["conv1.weight"]), w, "norm1"))
    y = relu(norm(conv(y, w["conv2.weight"], stride), w, "norm2"))
    return relu(shortcut + norm(conv(y, w["conv3.weight"]), w, "norm3"))


@pytest.mark.parametrize("size", [(16, 20), (19, 13)])
def test_the_backbone_is_the_reference_releases_resnet(size) -> None:
    config = hybrid_config(image_size=size)
    backbone = perturbed(config).double().backbone
    images = images_for(config, 1).double()
    recorder = Recorder(by_name=True)
    features, maps = backbone(images, recorder=recorder), recorder.named
    root = arrays(backbone.root)
    x = norm(conv(images.numpy(), root["conv.weight"], 2), root, "norm")
    close(maps["root.norm"], x, 1e-10)
    x = reference.max_pool(reference.pad_same(relu(x), 3, 2, value=-math.inf))
    close(maps["root"], x, 1e-10)
    for name, stride in [("stages.0.0", 1), ("stages.1.0", 2), ("stages.1.1", 1)]:
        x = unit(x, arrays(backbone, f"{name}."), stride)
        close(maps[name], x, 1e-9)
    close(features, x, 1e-9)
    assert torch.equal(features, backbone(images))


def test_the_roots_maximum_comes_before_its_relu_and_changes_no_bit() -> None:
    config = hybrid_config(image_size=(32, 32))
    root = perturbed(config).backbone.root
    images = images_for(config, 3)

    def passed(forward: Callable[[Tensor], Tensor]) -> list[Tensor]:
        root.zero_grad()
        output = forward(images)
        (output * torch.linspace(-1, 1, output.numel()).reshape(output.shape)).sum().backward()
        return [output, *(weight.grad for weight in root.parameters())]

    usual = passed(lambda images: max_pool_same(root.norm(root.conv(images)).relu()))
    assert (usual[0] == 0).any()  # windows without a positive value are among them
    assert all(map(torch.equal, passed(root), usual))


@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"image_size": (37, 45), "channels": 1},
        {"patch_size": (5, 3), "channels": 5, "num_classes": 0},
        {"positions": "relative"},
        {"backbone": BackboneConfig(blocks=(), width=8, norm_groups=4), "patch_size": (5, 4)},
    ],
)
def test_hybrids_run_and_their_fast_form_equals_the_full_one(settings, pool) -> None:
    config = hybrid_config(pool=pool, **settings)
    model, images = perturbed(config), images_for(config)
    logits = model(images)
    assert logits.shape == (2, config.num_classes or 32)
    close(model.trace(images).logits, logits, 1e-5)
    logits.square().sum().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())


def test_a_shortcut_has_a_convolution_only_where_shapes_change() -> None:
    stages = perturbed(hybrid_config()).backbone.stages
    assert [unit.shortcut is not None for stage in stages for unit in stage] == [True, True, False]


def test_a_new_unit_is_its_shortcut() -> None:
    model = create("R26+S/32", image_size=64, num_classes=2, device="cpu", seed=0)
    unit = model.backbone.stages[0][1]
    features = torch.rand(1, 256, 4, 4)
    close(unit(features), features, 0)


@pytest.mark.parametrize(
    ("blocks", "stride", "channels", "feature_size"),
    [((3, 4, 6, 3), 32, 2048, (7, 8)), ((3, 4, 9), 16, 1024, (14, 15)), ((), 4, 64, (56, 58))],
)
def test_the_feature_map_has_the_size_that_the_config_says(blocks, stride, channels, feature_size) -> None:
    config = BackboneConfig(blocks=blocks)
    assert (config.stride, config.channels) == (stride, channels)
    assert config.feature_size((224, 229)) == feature_size


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"blocks": (1, 0)}, r"at least one unit.*\(1, 0\)"),
        ({"blocks": (1,), "width": 40}, r"width 40.*norm_groups 32.*such as 32 or 64"),
        ({"blocks": (1,), "width": 0}, r"width is 0.*at least 1"),
        ({"blocks": (1,), "standardisation": "sqrt-var"}, r"'sqrt-var'.*Did you mean sqrt-var-eps"),
    ],
)
def test_a_backbone_that_cannot_be_built_is_refused(settings, message) -> None:
    with pytest.raises(ConfigError, match=message):
        BackboneConfig(**settings)


def test_patches_that_do_not_divide_the_feature_map_are_refused_with_the_multiple() -> None:
    with pytest.raises(ConfigError, match=r"40x48.*feature map of 5x6.*patches of 2x2.*multiple of 16x16"):
        hybrid_config(patch_size=(2, 2))


def test_a_hybrid_refuses_images_of_another_size() -> None:
    with pytest.raises(InputError, match=r"40x40.*40x48"):
        perturbed(hybrid_config())(torch.zeros(1, 3, 40, 40))


def test_a_vision_transformer_has_no_backbone() -> None:
    assert perturbed(vit_config()).backbone is None


def test_group_norms_compute_in_float32_under_autocast() -> None:
    root = perturbed(hybrid_config()).backbone.root
    features = torch.randn(2, root.norm.num_channels, 6, 5)
    expected = root.norm(features.bfloat16().float())
    with torch.autocast("cpu", torch.bfloat16):
        normed = root.norm(features.bfloat16())
    assert normed.dtype == torch.float32
    assert torch.equal(normed, expected)
