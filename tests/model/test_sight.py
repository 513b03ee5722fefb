"""What a model shows to whoever looks inside: its grid, its pooling, its last feature map, its maps reduced."""

import pytest
import torch

from tests.tiny import POOLS, close, hybrid_config, images_for, perturbed, resnet_config, vit_config
from vitrail import ConfigError


@pytest.mark.parametrize(
    ("config", "grid", "prefix", "attention"),
    [
        (vit_config(), (3, 4), 1, (2, 4)),
        (vit_config(pool="mean"), (3, 4), 0, (2, 4)),
        (hybrid_config(), (5, 6), 1, (2, 4)),
        (resnet_config(), None, 0, (0, 0)),
    ],
)
def test_a_config_says_which_tokens_there_are_and_what_attends(config, grid, prefix, attention) -> None:
    assert (config.grid, config.num_prefix, config.attention_shape) == (grid, prefix, attention)


@pytest.mark.parametrize("class_token", [True, None])
@pytest.mark.parametrize("pool", POOLS)
def test_pool_weights_are_shares_that_the_derivative_of_pooling_confirms(pool, class_token) -> None:
    """Class-token and mean pooling are linear: moving one token moves the result by its share."""
    config = vit_config(pool=pool, class_token=class_token)
    model = perturbed(config).double()
    tokens = torch.randn(2, config.num_tokens, config.dim).double()
    weights = model.pool_weights(tokens)
    close(weights.sum(1), torch.ones(2), 1e-12)
    if pool == "attention":
        head = model.head.pool
        query = head.query(head.probe).view(4, 8)
        keys = head.key_value(tokens)[:, :, :32].unflatten(2, (4, 8))
        scores = torch.einsum("hd,bthd->bht", query, keys) / 8**0.5
        close(weights, (scores.exp() / scores.exp().sum(2, keepdim=True)).mean(1), 1e-12)
        return
    moved = tokens.clone().requires_grad_()
    (slope,) = torch.autograd.grad(model.represent(moved).sum(), moved)
    close(weights, slope[:, :, 0], 1e-12)


def test_a_resnet_pools_no_tokens() -> None:
    config = resnet_config()
    model = perturbed(config)
    with pytest.raises(ConfigError, match="a ResNet does not pool tokens"):
        model.pool_weights(model.encode(images_for(config)).output)


@pytest.mark.parametrize("config", [hybrid_config(), resnet_config()])
def test_the_last_feature_map_is_part_of_the_graph(config) -> None:
    model, images = perturbed(config), images_for(config)
    encoded = model.encode(images)
    last = list(model.trace(images).feature_maps.values())[-1]
    last = last if config.grid else model.norm(last).relu()  # a ResNet pools what comes after its last norm
    assert torch.equal(encoded.feature_map, last)
    (slope,) = torch.autograd.grad(model.represent(encoded.output).sum(), encoded.feature_map)
    assert slope.abs().sum() > 0
    assert perturbed(vit_config()).encode(images_for(vit_config())).feature_map is None


def test_a_reduced_map_is_what_the_reduction_makes_of_the_whole_one() -> None:
    config = vit_config(depth=3)
    model, images = perturbed(config), images_for(config)
    whole = model.encode(images, attention=[0, 2], heads=[3, 1]).attention
    reduced = model.encode(images, attention=[0, 2], heads=[3, 1], reduce=lambda weights: weights.mean(1)).attention
    assert list(reduced) == [0, 2]
    for block, weights in whole.items():
        close(reduced[block], weights.mean(1), 1e-7)
