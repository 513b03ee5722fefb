import numpy as np
import pytest
import torch

from tests.reference import convolution as reference
from tests.tiny import arrays, close, images_for, perturbed, resnet_config
from vitrail import ConfigError, InputError


def conv(x, kernel, stride=1):
    half = (kernel.shape[2] - 1) // 2
    padded = np.pad(x, [(0, 0), (0, 0), (half, half), (half, half)])
    return reference.convolve(padded, reference.standardise(kernel, "sqrt-var-eps", 1e-10), stride)


def activate(x, w, name):
    return np.maximum(reference.group_norm(x, w[f"{name}.weight"], w[f"{name}.bias"], 4, 1e-5), 0)


def unit(x, w, stride):
    """A bottleneck, v2: norm and ReLU before each convolution."""
    y = activate(x, w, "norm1")
    shortcut = conv(y, w["shortcut.weight"], stride) if "shortcut.weight" in w else x
    y = conv(activate(conv(y, w["conv1.weight"]), w, "norm2"), w["conv2.weight"], stride)
    return shortcut + conv(activate(y, w, "norm3"), w["conv3.weight"])


@pytest.mark.parametrize("size", [(16, 20), (19, 13)])
def test_the_resnet_is_bits(size) -> None:
    config = resnet_config(image_size=size)
    model, images = perturbed(config).double(), images_for(config, 1).double()
    trace = model.trace(images)
    w = arrays(model)
    x = reference.max_pool(np.pad(conv(images.numpy(), w["root.weight"], 2), [(0, 0), (0, 0), (1, 1), (1, 1)]))
    close(trace.feature_maps["root"], x, 1e-10)
    for name, stride in [("stages.0.0", 1), ("stages.1.0", 2), ("stages.1.1", 1)]:
        x = unit(x, arrays(model, f"{name}."), stride)
        close(trace.feature_maps[name], x, 1e-9)
    pooled = activate(x, w, "norm").mean(axis=(2, 3))
    close(trace.representation, pooled, 1e-9)
    close(model(images), pooled @ w["linear.weight"].T + w["linear.bias"], 1e-9)


@pytest.mark.parametrize("settings", [{}, {"channels": 1}, {"channels": 5, "num_classes": 0}, {"blocks": (1,)}])
def test_trace_and_forward_agree(settings) -> None:
    config = resnet_config(**settings)
    model, images = perturbed(config), images_for(config)
    logits, trace = model(images), model.trace(images)
    assert logits.shape == (2, config.num_classes or config.feature_width)
    close(trace.logits, logits, 1e-5)
    close(trace.representation, model.features(images), 1e-5)
    logits.square().sum().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())


def test_a_resnet_takes_any_image_size() -> None:
    model = perturbed(resnet_config(image_size=(32, 32)))
    assert model(torch.zeros(1, 3, 45, 71)).shape == (1, 7)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("images", "message"),
    [
        (torch.zeros(3, 32, 32), r"\(3, 32, 32\).*images\[None\]"),
        (torch.zeros(1, 4, 32, 32), r"4 channels.*3.*channels=4"),
        (torch.zeros(1, 3, 32, 32, dtype=torch.int64), r"int64.*floating point"),
    ],
)
@pytest.mark.parametrize("call", ["__call__", "features", "trace"])
def test_images_that_do_not_fit_are_refused(images, message, call) -> None:
    with pytest.raises(InputError, match=message):
        getattr(perturbed(resnet_config()), call)(images)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"blocks": ()}, "stages is 0"),
        ({"blocks": (1, 0)}, r"blocks\[1\] is 0"),
        ({"width": 10}, "width 10 is not divisible by norm_groups 4; choose a width such as 8 or 12"),
        ({"num_classes": -1}, "num_classes is -1"),
        ({"image_size": (0, 32)}, r"image_size is \(0, 32\)"),
        ({"standardisation": "std"}, "standardisation is 'std'"),
    ],
)
def test_a_resnet_that_cannot_be_built_is_refused(settings, message) -> None:
    with pytest.raises(ConfigError, match=message):
        resnet_config(**settings)
