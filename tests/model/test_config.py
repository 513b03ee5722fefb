import dataclasses

import pytest

from tests.tiny import POOLS, POSITIONS, hybrid_config, vit_config
from vitrail import ConfigError, create

# Settings -> what was given, what was needed, what to do.
BAD = {
    "patch that does not divide": ({"patch_size": (5, 4)}, "5x4", "12x16", "resize to 10x16"),
    "dim not divisible by heads": ({"num_heads": 5}, "dim 32", "num_heads 5", "such as 30 or 35"),
    "class-token pooling without one": ({"class_token": False}, "class_token is False", "needs", "pool='mean'"),
    "norm_pooled without the mean": ({"norm_pooled": True}, "'class-token'", "after the mean", "norm_pooled=False"),
    "odd dim for 2-D": (
        {"dim": 33, "num_heads": 3, "positions": "learned-2d"},
        "dim is 33",
        "2 equal",
        "that 2 divides",
    ),
    "dim for sines": ({"dim": 34, "num_heads": 2, "positions": "sincos-2d"}, "dim is 34", "4 equal", "that 4 divides"),
    "placed relative": (
        {"positions": "relative", "position_placement": "every-layer"},
        "'relative'",
        "Table 8",
        "leave position_placement at 'input'",
    ),
    "placed none": (
        {"positions": "none", "position_placement": "every-layer-shared"},
        "'none'",
        "Table 8",
        "leave position_placement at 'input'",
    ),
    "pool": ({"pool": "max"}, "'max'", "one of class-token, mean, attention", "pool"),
    "positions": ({"positions": "learned"}, "'learned'", "learned-1d, learned-2d", "Did you mean learned-"),
    "placement": ({"position_placement": "every"}, "'every'", "every-layer, every-layer-shared", "Did you mean"),
    "resize": ({"position_resize": "tim"}, "'tim'", "google, timm", "Did you mean timm"),
    "gelu": ({"gelu": "exact"}, "'exact'", "tanh, erf", "gelu"),
    "depth": ({"depth": 0}, "depth is 0", "whole number", "at least 1"),
    "dim": ({"dim": 32.0}, "dim is 32.0", "whole number", "at least 1"),
    "channels": ({"channels": True}, "channels is True", "whole number", "at least 1"),
    "classes": ({"num_classes": -1}, "num_classes is -1", "whole number", "at least 0"),
    "representation": ({"representation_size": 0}, "representation_size is 0", "whole number", "at least 1"),
    "image size": ({"image_size": 12}, "image_size is 12", "(height, width)", "at least 1"),
    "patch size": ({"patch_size": (0, 4)}, "patch_size is (0, 4)", "(height, width)", "at least 1"),
    "dropout": ({"dropout": 1.0}, "dropout is 1.0", "probability", "below 1"),
    "attention dropout": ({"attention_dropout": -0.1}, "attention_dropout is -0.1", "probability", "from 0"),
    "stochastic depth": ({"stochastic_depth": 2}, "stochastic_depth is 2", "probability", "from 0"),
    "dropout of a word": ({"dropout": "0.1"}, "dropout is '0.1'", "probability", "from 0"),
}


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(("settings", "value", "requirement", "remedy"), BAD.values(), ids=BAD)
def test_wrong_settings_are_refused_in_one_sentence(settings, value, requirement, remedy) -> None:
    with pytest.raises(ConfigError) as error:
        vit_config(**settings)
    message = str(error.value)
    assert value in message
    assert requirement in message
    assert remedy in message
    assert "\n" not in message


def test_create_refuses_the_same() -> None:
    with pytest.raises(ConfigError, match=r"16x16 does not divide the image size 225x225; resize to 224x224"):
        create("B/16", image_size=225)
    with pytest.raises(ConfigError, match=r"dim 768 is not divisible by num_heads 7"):
        create("B/16", num_heads=7)


@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize(("positions", "placement"), POSITIONS)
def test_every_cell_of_table_8_is_a_config(positions, placement, pool) -> None:
    config = vit_config(positions=positions, position_placement=placement, pool=pool)
    assert config.class_token is (pool == "class-token")


@pytest.mark.parametrize(
    ("settings", "tokens"),
    [({}, 13), ({"pool": "mean"}, 12), ({"pool": "mean", "class_token": True}, 13), ({"patch_size": (3, 8)}, 9)],
)
def test_tokens_are_patches_and_the_class_token(settings, tokens) -> None:
    assert vit_config(**settings).num_tokens == tokens


def test_a_hybrid_counts_cells_of_its_feature_map() -> None:
    assert hybrid_config().grid == (5, 6)
    assert hybrid_config(image_size=(37, 41)).grid == (5, 6)


def test_replacing_a_field_checks_again() -> None:
    config = vit_config()
    assert dataclasses.replace(config, depth=5).depth == 5
    with pytest.raises(ConfigError):
        dataclasses.replace(config, pool="mean", class_token=False, num_heads=7)
