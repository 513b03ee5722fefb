import numpy as np
import pytest
import torch

from tests.reference import inside
from tests.tiny import POOLS, close, hybrid_config, images_for, perturbed, vit_config
from vitrail.analysis.rollout import attention_heat, rollout, rollout_heat

CONFIGS = [*(vit_config(depth=3, pool=pool) for pool in POOLS), hybrid_config(), vit_config(positions="relative")]


@pytest.mark.parametrize("config", CONFIGS)
def test_rollout_is_the_product_of_the_paper_and_its_rows_sum_to_one(config) -> None:
    model, images = perturbed(config, by=0.5), images_for(config)
    maps = model.attention_maps(images)
    flow = rollout([maps[block].mean(dim=1) for block in range(config.depth)])
    close(flow.sum(dim=2), torch.ones(2, config.num_tokens), 1e-5)
    for image in range(2):
        wanted = inside.rollout([maps[block][image].double().detach().numpy() for block in range(config.depth)])
        close(flow[image], wanted, 1e-5)


def pooled_row(config, rows: np.ndarray) -> np.ndarray:
    """The class token's row, or the mean over rows, without the class token's column."""
    row = rows[0] if config.pool == "class-token" else rows.mean(axis=0)
    return row[config.num_prefix :].reshape(config.grid)


@pytest.mark.parametrize("config", [vit_config(depth=3), vit_config(depth=3, pool="mean"), hybrid_config()])
def test_the_map_of_rollout_is_the_row_of_what_is_pooled(config) -> None:
    model, images = perturbed(config, by=0.5), images_for(config)
    maps = model.attention_maps(images)
    heat = rollout_heat(model, images)
    for image in range(2):
        wanted = inside.rollout([maps[block][image].double().detach().numpy() for block in range(config.depth)])
        close(heat[image], pooled_row(config, wanted), 1e-5)


def test_attention_pooling_mixes_the_rows_as_it_pools_tokens() -> None:
    config = vit_config(pool="attention")
    model, images = perturbed(config, by=0.5), images_for(config)
    maps = model.attention_maps(images)
    heat = rollout_heat(model, images)
    weights = model.pool_weights(model.encode(images).output).double().detach().numpy()
    for image in range(2):
        wanted = inside.rollout([maps[block][image].double().detach().numpy() for block in range(2)])
        close(heat[image], (weights[image] @ wanted).reshape(config.grid), 1e-5)


@pytest.mark.parametrize(("block", "head"), [(0, 1), (-1, None), (1, -1)])
def test_attention_of_a_block_and_head_is_the_class_tokens_row_of_the_trace(block, head) -> None:
    config = vit_config(depth=3)
    model, images = perturbed(config, by=0.5), images_for(config)
    attention = model.trace(images, attention="all").attention[block % 3]  # batch head query key
    wanted = attention.mean(dim=1) if head is None else attention[:, head]
    close(attention_heat(model, images, block=block, head=head), wanted[:, 0, 1:].reshape(2, 3, 4), 1e-6)
