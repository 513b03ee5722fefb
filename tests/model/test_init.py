import math

import pytest
import torch

from tests.tiny import (
    LATER,
    MIXERS,
    POOLS,
    POSITIONS,
    axial_resnet_config,
    hybrid_config,
    images_for,
    resnet_config,
    vit_config,
)
from vitrail import build, create
from vitrail.model.init import INITIAL_VALUES, lecun_normal, ones, rule, xavier_uniform, zeros

KINDS = {
    **{
        f"{kind} {placement} {pool}": vit_config(positions=kind, position_placement=placement, pool=pool)
        for kind, placement in POSITIONS
        for pool in POOLS
    },
    "representation": vit_config(representation_size=8),
    "norm after the mean": vit_config(pool="mean", norm_pooled=True),
    **{name: vit_config(**settings | {"num_classes": 7}) for name, settings in LATER.items()},
    **{name: vit_config(**settings) for name, settings in MIXERS.items()},
    "hybrid": hybrid_config(),
    "resnet": resnet_config(),
    "axial resnet": axial_resnet_config(),
}


@pytest.mark.parametrize("config", KINDS.values(), ids=KINDS)
def test_every_parameter_has_a_rule_and_is_filled(config) -> None:
    torch.manual_seed(0)
    model = build(config)
    for name, parameter in model.named_parameters():
        assert callable(rule(name))
        assert parameter.isfinite().all(), name
        assert parameter.abs().max() < 10, name


@pytest.mark.parametrize("config", KINDS.values(), ids=KINDS)
def test_a_seed_gives_the_same_weights_whatever_came_before(config) -> None:
    one = build(config, seed=5)
    torch.randn(7)
    other, third = build(config, seed=5), build(config, seed=6)
    pairs = list(zip(one.parameters(), other.parameters(), third.parameters(), strict=True))
    assert all(torch.equal(a, b) for a, b, _ in pairs)
    assert any(not torch.equal(a, c) for a, _, c in pairs)


def test_a_seed_leaves_the_global_generator_alone_and_no_seed_uses_it() -> None:
    before = torch.get_rng_state()
    build(vit_config(), seed=5)
    assert torch.equal(torch.get_rng_state(), before)
    build(vit_config())
    assert not torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("config", KINDS.values(), ids=KINDS)
def test_a_new_model_answers_every_class_alike(config) -> None:
    logits = build(config, seed=0).eval()(images_for(config))
    assert torch.equal(logits, torch.zeros_like(logits))


@pytest.mark.parametrize("config", [vit_config(head_bias=-6.9), resnet_config(head_bias=-6.9)], ids=["vit", "resnet"])
def test_the_bias_of_the_last_layer_is_the_constant_of_the_config(config) -> None:
    logits = build(config, seed=0).eval()(images_for(config))
    assert torch.equal(logits, torch.full_like(logits, -6.9))


# The rule for each parameter of the reference release: name, (distribution, parameter of it).
B16 = [
    ("embedding.projection.weight", "lecun", 768),
    ("embedding.projection.bias", "constant", 0),
    ("embedding.class_token", "constant", 0),
    ("embedding.positions.table", "normal", 0.02),
    ("encoder.blocks.3.norm1.weight", "constant", 1),
    ("encoder.blocks.3.norm1.bias", "constant", 0),
    ("encoder.blocks.3.attention.qkv.bias", "constant", 0),
    ("encoder.blocks.3.attention.out.weight", "uniform", math.sqrt(6 / (2 * 768))),
    ("encoder.blocks.3.attention.out.bias", "constant", 0),
    ("encoder.blocks.3.mlp.hidden.weight", "uniform", math.sqrt(6 / (768 + 3072))),
    ("encoder.blocks.3.mlp.hidden.bias", "normal", 1e-6),
    ("encoder.blocks.3.mlp.out.weight", "uniform", math.sqrt(6 / (768 + 3072))),
    ("encoder.blocks.3.mlp.out.bias", "normal", 1e-6),
    ("encoder.norm.weight", "constant", 1),
    ("head.representation.weight", "lecun", 768),
    ("head.representation.bias", "constant", 0),
    ("head.linear.weight", "constant", 0),
    ("head.linear.bias", "constant", 0),
]
POOL = [
    ("head.pool.probe", "uniform", math.sqrt(6 / (1 + 384))),
    ("head.pool.query.weight", "uniform", math.sqrt(6 / 768)),
    ("head.pool.key_value.weight", "uniform", math.sqrt(6 / 768)),
    ("head.pool.out.weight", "uniform", math.sqrt(6 / 768)),
    ("head.pool.mlp.hidden.weight", "uniform", math.sqrt(6 / (384 + 1536))),
    ("head.pool.mlp.hidden.bias", "normal", 1e-6),
    ("encoder.blocks.0.attention.offsets", "normal", 0.02),
]
HYBRID = [
    ("backbone.root.conv.weight", "lecun", 3 * 49),
    ("backbone.root.norm.weight", "constant", 1),
    ("backbone.stages.1.0.conv2.weight", "lecun", 128 * 9),
    ("backbone.stages.1.0.shortcut.conv.weight", "lecun", 256),
    ("backbone.stages.1.0.shortcut.norm.weight", "constant", 1),
    ("backbone.stages.1.0.norm2.weight", "constant", 1),
    ("backbone.stages.1.0.norm3.weight", "constant", 0),
    ("embedding.projection.weight", "lecun", 2048),
]
RESNET = [
    ("root.weight", "lecun", 3 * 49),
    ("stages.1.0.conv2.weight", "lecun", 128 * 9),
    ("stages.1.0.shortcut.weight", "lecun", 256),
    ("stages.1.0.norm3.weight", "constant", 1),
    ("norm.bias", "constant", 0),
    ("linear.weight", "constant", 0),
]


def check(tensor: torch.Tensor, kind: str, value: float) -> None:
    """Compare mean, deviation and bounds with their closed forms, to four deviations of the estimate."""
    if kind == "constant":
        assert torch.equal(tensor, torch.full_like(tensor, value))
        return
    deviation = {"normal": value, "uniform": value / math.sqrt(3), "lecun": math.sqrt(1 / value)}[kind]
    noise = 4 * deviation / math.sqrt(tensor.numel())
    assert abs(tensor.mean().item()) < noise
    assert abs(tensor.std().item() - deviation) < noise
    bound = {"normal": 6 * value, "uniform": value, "lecun": 2 * deviation / 0.87962566}[kind]
    assert tensor.abs().max().item() <= bound * (1 + 1e-6)
    if kind != "normal":
        assert tensor.abs().max().item() > 0.9 * bound


@pytest.mark.parametrize(
    ("model", "rows"),
    [
        (("B/16", {"representation_size": 768, "depth": 4}), B16),
        (("S/32", {"pool": "attention", "positions": "relative", "depth": 1}), POOL),
        (("R26+S/32", {"depth": 1}), HYBRID),
        (("R50x1", {"blocks": (1, 1)}), RESNET),
    ],
    ids=["B/16", "attention pooling", "hybrid", "resnet"],
)
def test_initial_values_have_the_statistics_of_the_reference_release(model, rows) -> None:
    name, settings = model
    parameters = dict(create(name, num_classes=10, seed=0, **settings).named_parameters())
    for parameter, kind, value in rows:
        check(parameters[parameter].detach(), kind, value)


def test_each_third_of_qkv_has_the_bounds_of_a_square_matrix() -> None:
    kernel = create("S/16", depth=1, seed=0).encoder.blocks[0].attention.qkv.weight.detach()
    for part in kernel.chunk(3):
        check(part, "uniform", math.sqrt(6 / (384 + 384)))
    assert kernel.abs().max() > math.sqrt(6 / (384 + 3 * 384))  # what one matrix of D -> 3D would be bounded by


def test_every_rule_is_used_by_some_model() -> None:
    configs = [*KINDS.values(), hybrid_config(pool="attention")]
    names = {name for config in configs for name, _ in build(config, device="meta").named_parameters()}
    used = {id(rule(name)) for name in (*names, "a parameter of another kind of model")}
    assert used == {id(fill) for _, fill in INITIAL_VALUES}


@pytest.mark.parametrize("fill", [lecun_normal, xavier_uniform, zeros, ones])
def test_a_rule_repeats_itself_with_a_generator(fill) -> None:
    one, other = torch.empty(8, 4), torch.empty(8, 4)
    fill(one, torch.Generator().manual_seed(1))
    fill(other, torch.Generator().manual_seed(1))
    assert torch.equal(one, other)
