"""Rotary positions against a rotation matrix for each pair, written out."""

import math

import numpy as np
import pytest
import torch

from tests.reference import transformer
from tests.tiny import arrays, close, images_for, perturbed, vit_config
from vitrail import ConfigError, RotaryConfig
from vitrail.model.attention import SelfAttention
from vitrail.model.rotary import Rotary, rotary_angles, rotate

CELLS = RotaryConfig(base=1e4, coordinates="cells", reference=(5, 7), offset=1.0)


def turned(heads: np.ndarray, angles: np.ndarray, prefix: int) -> np.ndarray:
    """Turn pair (j, j + d/2) of each token after the prefix by its own matrix."""
    out = heads.copy()
    half = heads.shape[1] // 2
    for token in range(prefix, len(heads)):
        for j in range(half):
            angle = angles[token - prefix, j]
            matrix = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
            out[token, [j, j + half]] = matrix @ heads[token, [j, j + half]]
    return out


def angles_of(config: RotaryConfig, head_dim: int, grid: tuple[int, int]) -> np.ndarray:
    rows = []
    for row in range(grid[0]):
        for column in range(grid[1]):
            angles = []
            for number, cells, axis in ((row, grid[0], 0), (column, grid[1], 1)):
                place = 2 * math.pi * (2 * (number + 0.5) / cells - 1)
                if config.coordinates == "cells":
                    place = (number + config.offset) * (config.reference or grid)[axis] / cells
                angles += [place / config.base ** (j / (head_dim // 4)) for j in range(head_dim // 4)]
            rows.append(angles)
    return np.array(rows)


@pytest.mark.parametrize("config", [RotaryConfig(), RotaryConfig(coordinates="cells"), CELLS])
@pytest.mark.parametrize("grid", [(3, 4), (2, 2)])
def test_angles_are_those_of_row_and_column(config, grid) -> None:
    close(rotary_angles(config, 8, grid), angles_of(config, 8, grid), 1e-12)


@pytest.mark.parametrize("prefix", [0, 1, 3])
def test_pairs_of_patches_are_turned_and_the_tokens_before_them_are_not(prefix) -> None:
    rotary = Rotary(CELLS, 8, (3, 4))
    rotary.table.copy_(rotary.compute((3, 4)))
    heads = torch.randn(2, 2, 12 + prefix, 8)
    answer = rotate(heads, rotary((3, 4)))
    for image in range(2):
        for head in range(2):
            wanted = turned(heads[image, head].numpy(), angles_of(CELLS, 8, (3, 4)), prefix)
            close(answer[image, head], wanted, 1e-5)


def test_attention_with_rotary_positions_is_the_equation_on_turned_queries_and_keys() -> None:
    config = vit_config(rotary=RotaryConfig(), positions="none", registers=2, depth=1)
    model, images = perturbed(config).double(), images_for(config).double()
    with torch.no_grad():
        trace = model.trace(images, attention="all")
    w = arrays(model.encoder.blocks[0])
    normed = transformer.layer_norm(trace.embedded.numpy(), w["norm1.weight"], w["norm1.bias"], 1e-6)
    qkv = normed @ w["attention.qkv.weight"].T + w["attention.qkv.bias"]
    q, k, _ = np.split(qkv, 3, axis=2)
    angles = angles_of(config.rotary, 8, (3, 4))
    for image in range(2):
        for head in range(4):
            part = slice(8 * head, 8 * head + 8)
            queries, keys = turned(q[image, :, part], angles, 3), turned(k[image, :, part], angles, 3)
            close(trace.attention[0][image, head], transformer.attention_weights(queries, keys), 1e-6)


def test_kept_patches_keep_their_angles_and_the_first_token_alone_gets_the_same_answer() -> None:
    config = vit_config(rotary=RotaryConfig(), positions="none")
    model, images = perturbed(config), images_for(config)
    everything = torch.arange(12).flip(0).expand(2, -1)
    close(model.encode(images, kept=everything).output[:, 0], model.encode(images).output[:, 0], 1e-5)
    close(model(images), model.trace(images).logits, 1e-5)


def test_a_model_takes_images_of_any_size() -> None:
    config = vit_config(rotary=RotaryConfig(), positions="none")
    model = perturbed(config)
    larger = perturbed(vit_config(rotary=RotaryConfig(), positions="none", image_size=(20, 8)))
    images = torch.randn(2, 3, 20, 8)
    close(model(images, any_size=True), larger(images), 1e-5)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"base": 0.0}, "base is 0.0"),
        ({"base": math.inf}, "finite"),
        ({"coordinates": "unit"}, "one of centred, cells"),
        ({"offset": 1.0}, "choose 'cells'"),
        ({"reference": (0, 2), "coordinates": "cells"}, "rotary.reference is"),
    ],
)
def test_settings_that_give_no_angles_are_refused(settings, message) -> None:
    with pytest.raises(ConfigError, match=message):
        RotaryConfig(**settings)


def test_heads_that_do_not_split_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"4 equal parts, but it has 2 values; choose another num_heads than 16"):
        vit_config(rotary=RotaryConfig(), num_heads=16)
    with pytest.raises(ConfigError, match="know the class token and patches only"):
        vit_config(rotary=RotaryConfig(), positions="relative")


def test_plain_attention_does_not_ask_for_angles() -> None:
    attention = SelfAttention(32, 4).eval()
    tokens = torch.randn(2, 5, 32)
    close(attention(tokens, rotation=None), attention(tokens), 0)
