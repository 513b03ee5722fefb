"""Explanations of an exported file by its own outputs, beside those of the weights in torch."""

from pathlib import Path

import numpy as np
import pytest

import vitrail
from tests.compiled.test_export import CROP, saved
from tests.data.pictures import photo
from tests.tiny import LATER, hybrid_config, resnet_config, vit_config
from vitrail import ConfigError

pytest.importorskip("onnxruntime")
pytest.importorskip("openvino")
pytestmark = [pytest.mark.compiled, pytest.mark.filterwarnings("ignore")]
FAMILIES = {
    "class token": vit_config(),
    "attention pool": vit_config(pool="attention"),
    "relative, mean": vit_config(positions="relative", pool="mean"),
    "hybrid": hybrid_config(),
    "DINOv3": vit_config(**LATER["DINOv3"]),
    "distilled": vit_config(**LATER["distilled"]),
}


def maps(model: Path, image, **settings) -> np.ndarray:
    return vitrail.explain(model, image, points=0, top=1, **settings)[0].maps[0].values


@pytest.mark.parametrize("name", FAMILIES)
def test_attention_and_rollout_of_a_file_are_those_of_the_weights(name, tmp_path: Path) -> None:
    model, image = saved(tmp_path, FAMILIES[name], **CROP), np.asarray(photo(3).resize((70, 50)))
    for file in ("model.onnx", "model.xml"):
        vitrail.export(model, tmp_path / file, attention="all")
        for settings in (
            {"method": "rollout"},
            {"method": "attention"},
            {"method": "attention", "layer": 0, "head": 1},
            {"method": "occlusion"},
        ):
            np.testing.assert_allclose(
                maps(tmp_path / file, image, **settings), maps(model, image, **settings), atol=2e-5
            )


def test_a_file_with_one_block_explains_that_block_alone(tmp_path: Path) -> None:
    model, image = saved(tmp_path), np.asarray(photo(3).resize((70, 50)))
    result = vitrail.export(model, tmp_path / "model.onnx", attention=[-1])
    assert {"attention", "pooling", "representation"} <= set(result.outputs)
    np.testing.assert_allclose(
        maps(tmp_path / "model.onnx", image, method="attention"), maps(model, image, method="attention"), atol=2e-5
    )
    for settings, words in (
        ({"method": "attention", "layer": 0}, "`layer` is 0, but the file has attention maps of block 1 only"),
        ({"method": "attention", "layer": 9}, "layer is 9, but the model has 2: 0 to 1"),
        ({"method": "attention", "head": 9}, "head is 9, but the model has 4"),
        ({"method": "rollout"}, "needs the attention maps of every block as an output; export the model again"),
        ({"method": "gradient-attention"}, "needs gradients, which a graph does not have"),
    ):
        with pytest.raises(ConfigError, match=words):
            maps(tmp_path / "model.onnx", image, **settings)
    assert {
        heat.method for heat in vitrail.explain(tmp_path / "model.onnx", image, points=0, compare=True)[0].maps
    } == {*("attention", "occlusion")}


def test_maps_that_a_model_or_a_file_does_not_have_are_refused(tmp_path: Path) -> None:
    image = np.asarray(photo(3).resize((70, 50)))
    model = saved(tmp_path, resnet_config())
    vitrail.export(model, tmp_path / "model.onnx")
    with pytest.raises(ConfigError, match="attention maps, which the graph does not have; choose one of occlusion"):
        maps(tmp_path / "model.onnx", image, method="rollout")
    with pytest.raises(ConfigError, match="there are no blocks 7 to trace"):
        vitrail.export(saved(tmp_path), tmp_path / "other.onnx", attention=[7])
