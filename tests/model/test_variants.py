"""Published counts: each row is a number from another source."""

import pytest

from vitrail import BackboneConfig, ConfigError, ResNetConfig, ViTConfig, create
from vitrail.model.build import configure
from vitrail.model.variants import NAMES, SIZES, named_config

PARAMETERS = [
    ("Ti/16", {}, 5_717_416),
    ("S/16", {}, 22_050_664),
    ("S/32", {}, 22_878_952),
    ("B/16", {}, 86_567_656),
    ("B/32", {}, 88_224_232),
    ("L/16", {}, 304_326_632),
    ("L/32", {}, 306_535_400),
    ("H/14", {}, 632_045_800),
    ("B/16", {"image_size": 384}, 86_859_496),
    ("L/16", {"image_size": 512}, 305_174_504),
    ("H/14", {"image_size": 518}, 633_470_440),
    ("B/16", {"num_classes": 0}, 85_798_656),
    ("B/16", {"representation_size": 768, "num_classes": 21_843}, 103_186_515),
    ("R50+B/16", {}, 98_659_112),
    ("R50+B/16", {"image_size": 384}, 98_950_952),
    ("R50+L/32", {"image_size": 384}, 329_092_136),
    ("R26+S/32", {}, 36_431_912),
    ("R+Ti/16", {}, 6_337_704),
]
MILLIONS = [  # BiT's ResNets with 1000 classes
    ("R50x1", "25.55"),
    ("R101x1", "44.54"),
    ("R50x3", "217.32"),
    ("R101x3", "387.93"),
    ("R152x2", "236.34"),
    ("R152x4", "936.53"),
]
TABLE_1 = [  # layers, width, MLP, heads; the last four were published later
    ("B", 12, 768, 3072, 12),
    ("L", 24, 1024, 4096, 16),
    ("H", 32, 1280, 5120, 16),
    ("Ti", 12, 192, 768, 3),
    ("S", 12, 384, 1536, 6),
    ("g", 40, 1408, 6144, 16),
    ("G", 48, 1664, 8192, 16),
]


def count(name, **settings) -> int:
    return sum(parameter.numel() for parameter in create(name, device="meta", **settings).parameters())


@pytest.mark.parametrize(("name", "settings", "parameters"), PARAMETERS)
def test_a_model_has_as_many_parameters_as_published(name, settings, parameters) -> None:
    assert count(name, **settings) == parameters


@pytest.mark.parametrize(("name", "millions"), MILLIONS)
def test_a_resnet_has_as_many_millions_of_parameters_as_published(name, millions) -> None:
    assert f"{count(name) / 1e6:.2f}" == millions


@pytest.mark.parametrize(("size", "depth", "dim", "mlp_dim", "num_heads"), TABLE_1)
def test_the_sizes_are_those_of_table_1(size, depth, dim, mlp_dim, num_heads) -> None:
    row = SIZES[size]
    assert (row.depth, row.dim, row.mlp_dim, row.num_heads) == (depth, dim, mlp_dim, num_heads)
    config = named_config(f"{size}/14")
    assert (config.depth, config.dim, config.mlp_dim, config.num_heads) == (depth, dim, mlp_dim, num_heads)


def test_the_list_has_every_published_model_once() -> None:
    expected = {f"{size}/{patch}" for size in ("Ti", "S", "B", "L", "H") for patch in (8, 14, 16, 32)}
    expected |= {"g/14", "G/14", "R50+B/16", "R50+B/32", "R50+L/16", "R50+L/32", "R26+S/32", "R+Ti/16"}
    expected |= {"R50x1", "R50x2", "R50x3", "R101x1", "R101x3", "R152x1", "R152x2", "R152x4", "R200x3"}
    expected |= {"Axial-B/16", "Axial-B/32", "Axial-R50x1"}
    assert set(NAMES) == expected
    assert len(NAMES) == len(expected)


@pytest.mark.parametrize("name", NAMES)
def test_every_name_makes_a_model(name) -> None:
    model = create(name, device="meta")
    assert model.config == configure(name, image_size=224)


@pytest.mark.parametrize(
    ("name", "same"),
    [
        ("ViT-B/16", "B/16"),
        ("R50+ViT-B/16", "R50+B/16"),
        ("R50x1+B/16", "R50+B/16"),
        (" L/16 ", "L/16"),
        ("R50", "R50x1"),
    ],
)
def test_long_names_stand_for_the_same_model(name, same) -> None:
    assert named_config(name) == named_config(same)


@pytest.mark.parametrize(
    ("name", "patch_size"), [("B/12", (12, 12)), ("B/16x8", (16, 8)), ("Ti/1", (1, 1)), ("S/224", (224, 224))]
)
def test_any_patch_size_goes(name, patch_size) -> None:
    config = configure(name, image_size=(patch_size[0] * 2, patch_size[1] * 3))
    assert config.patch_size == patch_size
    assert config.grid == (2, 3)


@pytest.mark.parametrize(
    ("name", "blocks", "patch", "tokens"),
    [
        ("R50+B/16", (3, 4, 9), 1, 197),
        ("R50+B/32", (3, 4, 6, 3), 1, 50),
        ("R50+L/16", (3, 4, 9), 1, 197),
        ("R26+S/32", (2, 2, 2, 2), 1, 50),
        ("R+Ti/16", (), 8, 50),
    ],
)
def test_hybrids_are_laid_out_as_in_the_paper(name, blocks, patch, tokens) -> None:
    config = named_config(name)
    assert config.backbone == BackboneConfig(blocks=blocks)
    assert config.patch_size == (patch, patch)
    assert config.num_tokens == tokens


@pytest.mark.parametrize(
    ("name", "blocks", "width"),
    [
        ("R50x1", (3, 4, 6, 3), 64),
        ("R101x3", (3, 4, 23, 3), 192),
        ("R152x4", (3, 8, 36, 3), 256),
        ("R200x3", (3, 24, 36, 3), 192),
    ],
)
def test_resnets_have_their_units_and_width(name, blocks, width) -> None:
    config = named_config(name)
    assert isinstance(config, ResNetConfig)
    assert (config.blocks, config.width) == (blocks, width)


@pytest.mark.parametrize(
    ("name", "suggestion"),
    [
        ("B16", "B/16"),
        ("b/16", "B/16"),
        ("ViT-B16", "B/16"),
        ("R50+B/8", "R50+B/16"),
        ("R50B/16", "R50+B/16"),
        ("R50x0", "R50x1"),
        ("R151x2", "R152x2"),
        ("X/16", "S/16"),
        ("R+Ti/32", "R+Ti/16"),
        ("R50+B/16x16", "R50+B/16"),
    ],
)
def test_an_unknown_model_is_refused_with_near_names(name, suggestion) -> None:
    with pytest.raises(ConfigError) as error:
        create(name)
    message = str(error.value)
    assert f"there is no model {name!r}" in message
    assert "`vitrail models` lists them" in message
    assert suggestion in message.split("Did you mean")[1]


@pytest.mark.parametrize("name", ["", "/", "R", "+", "swin_base_patch4_window7_224", "B/-16", "B/16/16"])
def test_nonsense_is_refused(name) -> None:
    with pytest.raises(ConfigError, match="there is no model"):
        named_config(name)


@pytest.mark.parametrize("name", ["B/0", "B/16x0"])
def test_patches_without_pixels_are_refused(name) -> None:
    with pytest.raises(ConfigError, match=r"without pixels.*B/16"):
        named_config(name)


def test_an_unknown_setting_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ConfigError, match=r"B/16 has no setting 'droput'.*attention_dropout.*Did you mean dropout"):
        named_config("B/16", droput=0.1)
    with pytest.raises(ConfigError, match="R50x1 has no setting 'pool'"):
        named_config("R50x1", pool="mean")


def test_settings_win_over_the_name() -> None:
    config = named_config("B/16", depth=3, pool="mean")
    assert isinstance(config, ViTConfig)
    assert (config.depth, config.pool, config.dim) == (3, "mean", 768)
