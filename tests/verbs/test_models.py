import pytest

import vitrail
from tests.tiny import resnet_config, vit_config
from vitrail import ConfigError
from vitrail.model.variants import NAMES

pytestmark = pytest.mark.usefixtures("unchecked")


def test_every_model_is_listed_with_its_published_size() -> None:
    models = vitrail.list_models()
    assert models.names == NAMES
    sizes = {row.name: row.parameters for row in models}  # of timm, and of the BiT release
    assert sizes["B/16"] == 86_567_656
    assert sizes["L/16"] == 304_326_632
    assert sizes["R50x1"] == 25_549_352
    assert models[NAMES.index("R50x1")].tokens is None


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("B/*", ("B/8", "B/14", "B/16", "B/32")),
        ("[LH]/16", ("L/16", "H/16")),
        ("B/12", ("B/12",)),
        (["R50x?", "B/16", "B/*"], ("R50x1", "R50x2", "R50x3", "B/16", "B/8", "B/14", "B/32")),
    ],
)
def test_names_and_patterns_can_be_given(pattern, names) -> None:
    size = 224 if pattern != "B/12" else 240
    assert vitrail.list_models(pattern, image_size=size).names == names


def test_models_of_a_pattern_that_do_not_fit_are_named_and_one_by_name_is_refused() -> None:
    models = vitrail.list_models("B/*", image_size=(384, 256))
    assert (models.names, models.misfits) == (("B/8", "B/16", "B/32"), ("B/14",))
    assert "B/14" in repr(models)
    with pytest.raises(ConfigError, match="patch size 14x14 does not divide"):
        vitrail.list_models(["B/*", "B/14"], image_size=384)


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("b/*", "the pattern 'b/\\*' matches no model.*Did you mean B/"),
        ("b/16", "there is no model 'b/16'"),
        ([], "there is no pattern"),
    ],
)
def test_what_is_not_a_model_is_one_sentence(pattern, message) -> None:
    with pytest.raises(ConfigError, match=message):
        vitrail.list_models(pattern)


def test_a_list_shows_itself_as_a_table() -> None:
    models = vitrail.list_models("B/16", num_classes=10)
    assert repr(models).splitlines()[-1].split() == ["B/16", "85,806,346", "85.81", "197", "17.56"]
    assert "<td" in models._repr_html_()
    assert repr(models[0]).startswith("B/16: 85,806,346 parameters, 197 tokens")


def test_cost_is_of_a_name_a_config_or_a_model() -> None:
    config = vit_config()
    built = vitrail.build(config, seed=0)
    assert vitrail.cost(config) == vitrail.cost(built)
    assert vitrail.cost(built).parameters == sum(parameter.numel() for parameter in built.parameters())
    wider = vitrail.cost(built, num_classes=9)
    assert wider.parameters - vitrail.cost(config).parameters == 2 * (config.dim + 1)
    assert vitrail.cost(resnet_config()).tokens is None
    assert vitrail.cost("B/16", image_size=384).tokens == 24 * 24 + 1


def test_cost_shows_itself_as_a_table() -> None:
    assert "86,567,656" in repr(vitrail.cost("B/16"))
    assert "86,567,656" in vitrail.cost("B/16")._repr_html_()


@pytest.mark.parametrize("model", ["B/16", vit_config()])
def test_a_setting_that_the_model_does_not_have_is_named(model) -> None:
    with pytest.raises(ConfigError, match=r"no setting 'num_class'.*Did you mean num_classes"):
        vitrail.cost(model, num_class=3)
