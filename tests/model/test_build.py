import pytest
import torch

from tests.tiny import hybrid_config, resnet_config, vit_config
from vitrail import ConfigError, ResNet, ViT, build, create
from vitrail.model.build import as_size, configure


@pytest.mark.parametrize(("config", "kind"), [(vit_config(), ViT), (hybrid_config(), ViT), (resnet_config(), ResNet)])
def test_a_config_becomes_its_model(config, kind) -> None:
    model = build(config, seed=0)
    assert type(model) is kind
    assert model.config is config
    assert model.training


@pytest.mark.parametrize("config", [vit_config(), hybrid_config(), resnet_config()])
def test_on_the_meta_device_nothing_is_stored(config) -> None:
    model = build(config, device="meta")
    assert all(parameter.is_meta for parameter in model.parameters())


def test_create_passes_every_setting_on() -> None:
    model = create(
        "Ti/16", num_classes=3, image_size=(32, 48), channels=2, seed=1, depth=1, pool="mean", positions="sincos-2d"
    )
    config = model.config
    assert (config.num_classes, config.image_size, config.channels) == (3, (32, 48), 2)
    assert (config.depth, config.pool, config.positions) == (1, "mean", "sincos-2d")
    assert model.eval()(torch.zeros(1, 2, 32, 48)).shape == (1, 3)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(("value", "size"), [(224, (224, 224)), ((32, 48), (32, 48)), ([32, 48], (32, 48))])
def test_one_number_is_a_square(value, size) -> None:
    assert as_size(value) == size
    assert configure("B/16", image_size=value).image_size == size


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("image_size", [224.0, None, "224", (224,), (224, 224, 3), -16, 0, (224, 0)])
def test_anything_but_an_image_size_is_refused(image_size) -> None:
    with pytest.raises(ConfigError, match=r"size.*\(height, width\)"):
        create("B/16", image_size=image_size, device="meta")


def test_fixed_tables_are_filled_and_not_stored() -> None:
    model = build(vit_config(positions="sincos-2d"), seed=0)
    table = model.embedding.positions.table
    assert table.isfinite().all()
    assert table.abs().max() == 1
    assert not any("positions" in name for name in model.state_dict())
