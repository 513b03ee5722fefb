import numpy as np
import pytest
import torch
import torch.nn.functional as F

from tests.reference import inside
from tests.tiny import close, hybrid_config, images_for, perturbed, vit_config
from vitrail.analysis import relevance
from vitrail.analysis.relevance import relevance_heat


def plain_norm(tokens: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float) -> torch.Tensor:
    """LayerNorm, whose deviation is a constant for gradients."""
    deviation = (tokens.var(-1, correction=0, keepdim=True) + eps).sqrt().detach()
    return (tokens - tokens.mean(-1, keepdim=True)) / deviation * weight + bias


def plain_maps(model, images: torch.Tensor) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """The Vision Transformer once more, from its weights alone: logits, and A of every block in the graph."""
    config, w = model.config, dict(model.named_parameters())
    dim, heads = config.dim, config.num_heads
    kernel = w["embedding.projection.weight"].view(dim, 3, 4, 4)
    patches = F.conv2d(images, kernel, w["embedding.projection.bias"], stride=4).flatten(2).mT
    tokens = torch.cat([w["embedding.class_token"].expand(len(images), 1, dim), patches], 1)
    tokens = tokens + w["embedding.positions.table"]
    maps = []
    for block in range(config.depth):
        at = f"encoder.blocks.{block}."
        normed = plain_norm(tokens, w[at + "norm1.weight"], w[at + "norm1.bias"], config.norm_eps)
        q, k, v = F.linear(normed, w[at + "attention.qkv.weight"], w[at + "attention.qkv.bias"]).chunk(3, -1)
        q, k, v = (part.reshape(len(images), -1, heads, dim // heads).transpose(1, 2) for part in (q, k, v))
        scores = q @ k.mT / np.sqrt(dim // heads)
        attention = scores.exp() / scores.exp().sum(-1, keepdim=True)
        maps.append(attention)
        mixed = (attention @ v).transpose(1, 2).reshape(len(images), -1, dim)
        tokens = tokens + F.linear(mixed, w[at + "attention.out.weight"], w[at + "attention.out.bias"])
        normed = plain_norm(tokens, w[at + "norm2.weight"], w[at + "norm2.bias"], config.norm_eps)
        hidden = F.gelu(F.linear(normed, w[at + "mlp.hidden.weight"], w[at + "mlp.hidden.bias"]), approximate="tanh")
        tokens = tokens + F.linear(hidden, w[at + "mlp.out.weight"], w[at + "mlp.out.bias"])
    tokens = plain_norm(tokens, w["encoder.norm.weight"], w["encoder.norm.bias"], config.norm_eps)
    pooled = tokens[:, 0] if config.pool == "class-token" else tokens[:, 1:].mean(1)
    return F.linear(pooled, w["head.linear.weight"], w["head.linear.bias"]), maps


@pytest.mark.parametrize("pool", ["class-token", "mean"])
def test_the_map_is_that_of_a_plain_implementation(pool) -> None:
    config = vit_config(depth=3, pool=pool, class_token=True)
    model, images, classes = perturbed(config, by=0.3).double(), images_for(config).double(), torch.tensor([2, 5])
    logits, maps = plain_maps(model, images)
    close(logits, model(images), 1e-10)
    slopes = torch.autograd.grad(logits[0, 2] + logits[1, 5], maps)
    heat = relevance_heat(model, images, classes)
    for image in range(2):
        wanted = inside.relevance(
            [attention[image].detach().numpy() for attention in maps], [slope[image].numpy() for slope in slopes]
        )
        row = wanted[0] if pool == "class-token" else wanted[1:].mean(axis=0)
        close(heat[image], row[1:].reshape(3, 4), 1e-10)


@pytest.mark.parametrize("config", [vit_config(depth=3), hybrid_config(), vit_config(pool="attention")])
def test_a_pass_for_each_block_gives_the_same_map_as_one_for_all(config, monkeypatch) -> None:
    model, images, classes = perturbed(config, by=0.3), images_for(config), torch.tensor([0, 6])
    together = relevance_heat(model, images, classes)
    monkeypatch.setattr(relevance, "MAP_BYTES", 1)
    close(relevance_heat(model, images, classes), together, 1e-6)
    assert together.shape == (2, *config.grid)


def test_frozen_weights_change_nothing() -> None:
    config = vit_config()
    model, images, classes = perturbed(config), images_for(config), torch.tensor([0, 6])
    before = relevance_heat(model, images, classes)
    close(relevance_heat(model.requires_grad_(False), images, classes), before, 1e-7)


def test_another_class_has_another_map() -> None:
    config = vit_config()
    model, images = perturbed(config, by=0.3), images_for(config)
    first, second = (relevance_heat(model, images, torch.tensor([number, number])) for number in (0, 1))
    assert not torch.allclose(first, second, rtol=0.1)
