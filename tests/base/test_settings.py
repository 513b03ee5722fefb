import json
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tiny import hybrid_config, resnet_config, vit_config
from vitrail import ConfigError, ResNetConfig, ViTConfig
from vitrail.base.settings import from_dict, to_dict


@pytest.mark.parametrize(
    "config", [vit_config(), hybrid_config(), resnet_config(), vit_config(pool="mean", representation_size=5)]
)
def test_a_config_survives_json(config) -> None:
    text = json.dumps(to_dict(config))
    assert from_dict(type(config), json.loads(text)) == config


def test_one_error_lists_everything_wrong() -> None:
    settings = to_dict(vit_config()) | {
        "dept": 3,
        "num_heads": "four",
        "pool": "max",
        "patch_size": [4],
        "dropout": True,
    }
    del settings["dim"]
    with pytest.raises(ConfigError) as error:
        from_dict(ViTConfig, settings, where="the settings in x.safetensors")
    message = str(error.value)
    assert message.startswith("the settings in x.safetensors do not make a ViTConfig")
    for part in (
        "dept is not a setting; did you mean depth",
        "dim is missing",
        "num_heads must be a whole number, not 'four'",
        "pool must be one of class-token, mean, attention, ",
        "patch_size must be a list of 2 values, each a whole number, not [4]",
        "dropout must be a number, not True",
    ):
        assert part in message


def test_a_problem_inside_names_its_path() -> None:
    settings = to_dict(hybrid_config())
    settings["backbone"]["blocks"] = [1, "two"]
    settings["backbone"]["widht"] = 8
    with pytest.raises(ConfigError, match=r"backbone\.blocks\[1\] must be a whole number") as error:
        from_dict(ViTConfig, settings)
    assert "backbone.widht is not a setting; did you mean width" in str(error.value)


def test_settings_that_cannot_be_built_are_refused_with_the_place() -> None:
    with pytest.raises(ConfigError, match=r"the settings in x do not make a ViTConfig: .*not divisible by num_heads"):
        from_dict(ViTConfig, to_dict(vit_config()) | {"num_heads": 5}, where="the settings in x")
    settings = to_dict(hybrid_config())
    settings["backbone"]["norm_groups"] = 3
    with pytest.raises(ConfigError, match=r"backbone: .*norm_groups"):
        from_dict(ViTConfig, settings)


@pytest.mark.parametrize("settings", [None, 3, [1], "text"])
def test_anything_but_a_table_is_refused(settings) -> None:
    with pytest.raises(ConfigError, match="must be a table of settings"):
        from_dict(ResNetConfig, settings)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@given(st.dictionaries(st.sampled_from([*to_dict(hybrid_config()), "other"]), json_values, max_size=4))
def test_any_json_makes_a_config_or_one_clear_error(changes) -> None:
    try:
        config = from_dict(ViTConfig, to_dict(hybrid_config()) | changes)
    except ConfigError:
        return
    assert from_dict(ViTConfig, json.loads(json.dumps(to_dict(config)))) == config


def test_whole_numbers_are_taken_as_numbers_and_truth_is_not() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Some:
        share: float
        count: int = 1

    assert from_dict(Some, {"share": 1}) == Some(share=1.0)
    with pytest.raises(ConfigError, match="count must be a whole number, not True"):
        from_dict(Some, {"share": 1, "count": True})
