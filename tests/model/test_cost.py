from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from tests.tiny import LATER, MIXERS, axial_resnet_config, hybrid_config, resnet_config, vit_config
from vitrail import BackboneConfig, build
from vitrail.model.build import configure
from vitrail.model.contract import Layer, Model
from vitrail.model.cost import cost
from vitrail.model.family import ModelConfig
from vitrail.recipes import results

STEM = BackboneConfig(blocks=(), width=8, norm_groups=4)
CONFIGS = {
    "class token": vit_config(),
    "mean": vit_config(pool="mean"),
    "attention pooling": vit_config(pool="attention"),
    "representation": vit_config(representation_size=20),
    "no classes": vit_config(num_classes=0),
    "relative": vit_config(positions="relative"),
    "relative, mean": vit_config(positions="relative", pool="mean"),
    "2-D at every layer": vit_config(positions="learned-2d", position_placement="every-layer"),
    "hybrid": hybrid_config(),
    "hybrid, odd size": hybrid_config(image_size=(37, 45)),
    "root alone": hybrid_config(backbone=STEM, patch_size=(5, 4)),
    "resnet": resnet_config(),
    "resnet, odd size": resnet_config(image_size=(37, 45), num_classes=0),
    "axial resnet": axial_resnet_config(),
    "axial resnet, odd size": axial_resnet_config(image_size=(37, 45), num_classes=0),
    "Axial-B/16": configure("Axial-B/16", image_size=224),
    "Axial-R50x1": configure("Axial-R50x1", image_size=224),
    **{name: vit_config(**settings) for name, settings in LATER.items()},
    **{name: vit_config(**settings) for name, settings in MIXERS.items()},
    "B/16": configure("B/16", image_size=224),
    "R50+B/16": configure("R50+B/16", image_size=224),
    "R50x1": configure("R50x1", image_size=224),
}
PUBLISHED_GMACS = [("B/16", 17.56), ("L/16", 61.56), ("L/32", 15.38), ("H/14", 167.3), ("B/32", 4.41)]
TABLE_6 = [(row.model, row.epochs, row.exaflops) for row in results.TABLE_6 if row.family == "ViT"]
LARGER = {"dim": 64, "depth": 3, "mlp_dim": 256, "image_size": (32, 48)}
KEPT = {
    "class token": vit_config(**LARGER),
    "mean": vit_config(pool="mean", **LARGER),
    "attention pooling": vit_config(pool="attention", **LARGER),
    "representation": vit_config(representation_size=20, **LARGER),
    "dropout": vit_config(dropout=0.1, pool="mean", **LARGER),
    "attention dropout": vit_config(attention_dropout=0.1, **LARGER),
    "relative": vit_config(positions="relative", **LARGER),
    "relative, attention dropout, mean": vit_config(positions="relative", attention_dropout=0.1, pool="mean", **LARGER),
    "at every layer": vit_config(position_placement="every-layer", **LARGER),
    **{
        name: vit_config(**LARGER | settings | {"image_size": (32, 48)})
        for name, settings in LATER.items()
        if settings.get("num_classes") != 0
    },
    **{name: vit_config(**LARGER | settings) for name, settings in MIXERS.items()},
    "axial, dropout": vit_config(dropout=0.1, attention_dropout=0.1, **LARGER | MIXERS["axial"]),
    "window, dropout": vit_config(dropout=0.1, **LARGER | MIXERS["window"]),
    "linear, dropout": vit_config(dropout=0.1, **LARGER | MIXERS["linear"]),
    "mlp, dropout": vit_config(dropout=0.1, **LARGER | MIXERS["mlp"]),
    "hybrid": hybrid_config(image_size=(64, 96)),
    "hybrid, odd size": hybrid_config(image_size=(61, 93)),
    "root alone": hybrid_config(backbone=STEM, patch_size=(4, 4), image_size=(64, 64)),
    "resnet": resnet_config(image_size=(64, 96)),
    "resnet, odd size": resnet_config(image_size=(61, 93)),
    "axial resnet": axial_resnet_config(image_size=(64, 96)),
}


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_multiply_accumulates_are_those_that_torch_counts(config) -> None:
    model = build(config, device="meta")
    images = torch.empty(1, config.channels, *config.image_size, device="meta")
    with FlopCounterMode(display=False) as counter:
        model.trace(images)
    assert cost(config).macs * 2 == counter.get_total_flops()


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_parameters_are_those_of_the_model(config) -> None:
    assert cost(config).parameters == sum(parameter.numel() for parameter in build(config, device="meta").parameters())


@pytest.mark.parametrize(("name", "gmacs"), PUBLISHED_GMACS)
def test_gmacs_are_the_published_ones(name, gmacs) -> None:
    assert cost(configure(name)).macs / 1e9 == pytest.approx(gmacs, abs=0.05)


@pytest.mark.parametrize(("name", "epochs", "exaflops"), TABLE_6)
def test_table_6_follows_from_the_multiply_accumulates(name, epochs, exaflops) -> None:
    """Within 2% and the half exaFLOP by which the paper's whole numbers are rounded."""
    counted = 6 * cost(configure(name)).macs * 303e6 * epochs / 1e18
    assert abs(counted - exaflops) <= 0.02 * exaflops + 0.5


@pytest.mark.parametrize(
    ("config", "tokens"), [(vit_config(), 13), (hybrid_config(pool="mean"), 30), (resnet_config(), None)]
)
def test_tokens_are_the_length_of_the_sequence(config, tokens) -> None:
    assert cost(config).tokens == tokens


def saved_values(config, batch: int) -> float:
    """Count the float32 values that a training step keeps for its backward pass, each memory once, without weights."""
    model = build(config, seed=0).train()
    weights = {tensor.untyped_storage().data_ptr() for tensor in (*model.parameters(), *model.buffers())}
    sizes, alive = {}, []

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights:
            sizes[storage.data_ptr()] = storage.nbytes() / 4
        alive.append(tensor)  # so that no memory is used twice
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        logits = model(torch.randn(batch, config.channels, *config.image_size))
    assert logits.requires_grad
    return sum(sizes.values())


@pytest.mark.parametrize("config", KEPT.values(), ids=KEPT)
def test_activations_are_what_the_backward_pass_keeps(config) -> None:
    per_image = (saved_values(config, 6) - saved_values(config, 2)) / 4
    assert cost(config).activations == pytest.approx(per_image, rel=0.03)


def test_with_checkpointing_a_further_block_keeps_its_input_only() -> None:
    four, five = (cost(vit_config(depth=depth)) for depth in (4, 5))
    assert five.checkpointed_activations - four.checkpointed_activations == 13 * 32
    assert five.checkpointed_activations < five.activations


@pytest.mark.parametrize("config", [hybrid_config(), resnet_config(blocks=(3, 4, 6, 3))], ids=["hybrid", "resnet"])
def test_checkpointing_saves_memory(config) -> None:
    counted = cost(config)
    assert 0 < counted.checkpointed_activations < counted.activations


@dataclass(frozen=True, kw_only=True)
class PlainConfig(ModelConfig):
    feature_width = 48
    summary = "one linear layer on all pixels"


class Plain(Model, config=PlainConfig):
    """A kind of model that does not say what it costs."""

    def __init__(self, config: PlainConfig) -> None:
        super().__init__(config)
        self.head = nn.Linear(config.channels * 16, config.num_classes)

    @property
    def last_linear(self) -> nn.Linear:
        return self.head

    def layers(self) -> list[Layer]:
        return [Layer(name="head", prefixes=("head.",))]

    def features(self, images: Tensor, **_: Any) -> Tensor:
        return images.flatten(1)


def test_a_kind_that_does_not_say_what_it_costs_is_counted_by_torch() -> None:
    counted = cost(PlainConfig(image_size=(4, 4), num_classes=5))
    assert (counted.macs, counted.parameters, counted.tokens) == (48 * 5, 49 * 5, None)
    assert counted.activations == 48  # the input of the layer
