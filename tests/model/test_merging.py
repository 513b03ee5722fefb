"""Token merging beside a NumPy version in which merged tokens are repeated, and what it promises."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.reference import merging as reference
from tests.tiny import LATER, hybrid_config, perturbed, resnet_config, vit_config
from vitrail import ConfigError
from vitrail.model.merging import check_merging, match

CONFIGS = {
    "class token": vit_config(depth=3),
    "mean": vit_config(depth=3, pool="mean"),
    "mean, class token": vit_config(depth=3, pool="mean", class_token=True),
    "distillation token": vit_config(depth=3, distillation_token=True, pool="distilled"),
    "registers": vit_config(depth=3, registers=3),
    "registers, mean": vit_config(depth=3, registers=3, pool="mean"),
    "class token beside the mean": vit_config(depth=3, pool="class-and-mean"),
    "hybrid": hybrid_config(),
}


def images_of(config, count=3):
    return torch.randn(count, config.channels, *config.image_size, generator=torch.Generator().manual_seed(1))


def in_double(model):
    return {name: value.double().numpy() for name, value in model.state_dict().items()}


@pytest.mark.parametrize("count", [1, 3, 100])
@pytest.mark.parametrize("name", CONFIGS)
def test_the_pass_is_that_of_the_paper(name, count) -> None:
    config = CONFIGS[name]
    model = perturbed(config).double().eval()
    images = images_of(config).double()
    with torch.no_grad():
        tokens = model.encode(images, layers=[0]).layers[0].numpy()
        encoded = model.encode(images, merge_tokens=count)
        features = model.features(images, merge_tokens=count).numpy()
        torch.testing.assert_close(model.classify(torch.from_numpy(features)), model(images, merge_tokens=count))
    weights = in_double(model)
    settings = {"depth": config.depth, "num_heads": config.num_heads, "eps": config.norm_eps, "gelu": config.gelu}
    for image in range(len(images)):
        expected, members = reference.encode(tokens[image], weights, count=count, prefix=config.num_prefix, **settings)
        np.testing.assert_allclose(encoded.output[image].numpy(), expected, atol=1e-9)
        assert encoded.sizes[image, :, 0].tolist() == [len(patches) for patches in members]
        means = {  # over the patches, wherever their token went
            first: np.mean(
                [expected[at] for at, some in enumerate(members) for patch in some if patch >= first], axis=0
            )
            for first in (config.num_prefix, config.first_pooled)
        }
        pooled = {
            "class-token": expected[0],
            "distilled": expected[:2].ravel(),
            "mean": means[config.first_pooled],
            "class-and-mean": np.concatenate([expected[0], means[config.num_prefix]]),
        }[config.pool]
        np.testing.assert_allclose(features[image], pooled, atol=1e-9)


def test_nothing_merged_is_the_plain_pass_bit_for_bit() -> None:
    model = perturbed(vit_config())
    images = images_of(model.config)
    assert torch.equal(model(images, merge_tokens=0), model(images))


def test_attention_pooling_counts_a_merged_token_as_often_as_it_has_patches() -> None:
    model = perturbed(vit_config(pool="attention")).double().eval()
    with torch.no_grad():
        encoded = model.encode(images_of(model.config, 1).double(), merge_tokens=2)
        repeated = encoded.output.repeat_interleave(encoded.sizes[0, :, 0].long(), dim=1)
        torch.testing.assert_close(model.represent(encoded.output, encoded.sizes), model.represent(repeated))


def test_equal_patches_lose_nothing_but_their_number() -> None:
    config = vit_config(positions="none", depth=3)
    model = perturbed(config).double().eval()
    flat = torch.full((1, 3, *config.image_size), 0.3, dtype=torch.float64)  # every patch is the same
    with torch.no_grad():
        torch.testing.assert_close(model(flat, merge_tokens=5), model(flat))


@given(st.integers(2, 30), st.integers(0, 5), st.integers(1, 20), st.integers(0, 100))
def test_every_token_is_kept_merged_or_joined_once(tokens, prefix, count, seed) -> None:
    count = min(count, (tokens - min(prefix, tokens)) // 2)
    if count < 1 or prefix >= tokens:
        return
    metric = torch.randn(2, tokens, 4, generator=torch.Generator().manual_seed(seed))
    matching = match(metric, count, prefix)
    for image in range(2):
        first = sorted(matching.kept[image].tolist() + matching.merged[image].tolist())
        assert first == list(range((tokens + 1) // 2))
        assert all(2 * number >= prefix for number in matching.merged[image].tolist())
        assert all(2 * number + 1 >= prefix for number in matching.into[image].tolist())


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (resnet_config(), "cannot be merged; leave out `merge_tokens`"),
        (vit_config(positions="relative"), "positions inside its blocks"),
        (vit_config(position_placement="every-layer"), "positions inside its blocks"),
        (vit_config(**LATER["DINOv3"]), "positions inside its blocks"),
    ],
)
def test_models_whose_tokens_cannot_be_merged_are_refused(config, words) -> None:
    with pytest.raises(ConfigError, match=words):
        check_merging(config, 2)
    check_merging(config, 0)


def test_a_count_below_0_is_refused() -> None:
    with pytest.raises(ConfigError, match="merge_tokens is -1, but must be a whole number"):
        check_merging(vit_config(), -1)
