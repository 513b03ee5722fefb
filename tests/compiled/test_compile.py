"""torch.compile without graph breaks and torch.export with a dynamic batch give the eager numbers."""

import pytest
import torch
from torch import nn

from tests.tiny import LATER, close, hybrid_config, images_for, perturbed, resnet_config, vit_config
from vitrail import BackboneConfig

pytestmark = [
    pytest.mark.compiled,
    pytest.mark.filterwarnings("ignore"),  # torch's own compiler warns about torch
]

CONFIGS = {
    "class token": vit_config(),
    "mean": vit_config(depth=1, pool="mean"),
    "relative": vit_config(positions="relative"),
    "hybrid": hybrid_config(depth=1, backbone=BackboneConfig(blocks=(1, 1), width=8, norm_groups=4)),
    "resnet": resnet_config(blocks=(1, 1)),
    "CLIP": vit_config(**LATER["CLIP"]),
    "DINOv2 giant": vit_config(**LATER["DINOv2 giant"]),
    "DINOv3": vit_config(**LATER["DINOv3"]),
}


@pytest.fixture(autouse=True)
def _fresh_compiler():
    torch.compiler.reset()
    yield
    torch.compiler.reset()


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_a_compiled_model_has_no_graph_break_and_equals_the_eager_one(config) -> None:
    model, images = perturbed(config), images_for(config)
    wanted = model(images)
    compiled = torch.compile(model, fullgraph=True)
    with torch.inference_mode():
        close(compiled(images), wanted, 1e-5)


@pytest.mark.parametrize(
    ("name", "backend"),  # the C++ compiler is slow; without it the graph of both passes is still whole
    [
        ("class token", "inductor"),
        ("mean", "aot_eager"),
        ("relative", "aot_eager"),
        ("hybrid", "aot_eager"),
        ("resnet", "aot_eager"),
    ],
)
def test_a_compiled_training_step_has_the_eager_gradients(name, backend) -> None:
    config = CONFIGS[name]
    model, images, labels = perturbed(config).train(), images_for(config, 3), torch.tensor([0, 3, 6])

    def gradients(forward) -> dict[str, torch.Tensor]:
        model.zero_grad(set_to_none=True)
        nn.functional.cross_entropy(forward(images), labels).backward()
        return {name: parameter.grad.clone() for name, parameter in model.named_parameters()}

    wanted = gradients(model)
    for name, gradient in gradients(torch.compile(model, fullgraph=True, backend=backend)).items():
        close(gradient, wanted[name], 1e-5 * max(1, wanted[name].abs().max().item()))


def test_a_compiled_model_with_dropout_trains() -> None:
    config = vit_config(dropout=0.1, attention_dropout=0.1, stochastic_depth=0.1)
    model = perturbed(config).train()
    loss = torch.compile(model, fullgraph=True, backend="aot_eager")(images_for(config)).square().mean()
    loss.backward()
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters())


EXPORTED = CONFIGS | {
    "attention pooling": vit_config(pool="attention", gelu="erf"),
    "2-D at every layer": vit_config(positions="learned-2d", position_placement="every-layer"),
}


@pytest.mark.parametrize("config", EXPORTED.values(), ids=EXPORTED)
def test_an_exported_model_takes_any_batch(config) -> None:
    model = perturbed(config)
    batch = torch.export.Dim("batch", min=1, max=64)
    program = torch.export.export(model, (images_for(config, 3),), dynamic_shapes=({0: batch},), strict=False)
    for size in (1, 3, 5):
        images = images_for(config, size, seed=size)
        close(program.module()(images), model(images), 1e-5)
