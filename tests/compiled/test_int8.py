"""Graphs in int8, calibrated with the embedded sample."""

from pathlib import Path

import numpy as np
import pytest

import vitrail
from tests.compiled.test_export import saved
from tests.tiny import vit_config
from vitrail import ConfigError, InputError

pytestmark = [pytest.mark.compiled, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    return saved(tmp_path_factory.mktemp("int8"), vit_config(dim=64, mlp_dim=256, num_classes=7))


def test_an_int8_graph_keeps_the_agreement_asked_for_and_says_which_layers_it_left(model, tmp_path: Path) -> None:
    result = vitrail.export(model, tmp_path / "model.onnx", int8=True, calibrate="sample", agreement=98)
    assert result.precision == "int8"
    assert result.agreement >= 0.9  # of the 32 images that every export is compared on
    assert "layers are in int8" in result.notes[0]
    assert result.size < vitrail.export(model, tmp_path / "float.onnx").size
    answer = vitrail.predict(tmp_path / "model.onnx", np.zeros((30, 40, 3), np.uint8))
    assert answer.label == vitrail.predict(model, np.zeros((30, 40, 3), np.uint8)).label
    other = vitrail.predict(tmp_path / "model.onnx", np.zeros((30, 40, 3), np.uint8), engine="openvino")
    assert other.probability == pytest.approx(answer.probability, abs=0.05)


def test_settings_of_int8_that_do_not_go_together_are_refused(model, tmp_path: Path) -> None:
    for settings, words in (
        ({"int8": True}, "`int8` needs images to `calibrate` with"),
        ({"calibrate": "sample"}, "`int8` needs images to `calibrate` with"),
        ({"int8": True, "calibrate": "sample", "agreement": 101}, "`agreement` is 101"),
    ):
        with pytest.raises(ConfigError, match=words):
            vitrail.export(model, tmp_path / "model.onnx", **settings)
    with pytest.raises(ConfigError, match="cannot be written in int8"):
        vitrail.export(model, tmp_path / "model.pt2", int8=True, calibrate="sample")
    few = vitrail.data.open("sample", split="test").take(np.arange(5))
    with pytest.raises(InputError, match="5 images that fit the model, but calibration needs at least 32"):
        vitrail.export(model, tmp_path / "model.onnx", int8=True, calibrate=few)
