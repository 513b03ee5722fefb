"""Every engine gives the same answers, on real images and with any number of them."""

import numpy as np
import pytest
import torch

import vitrail
from tests.tiny import hybrid_config, perturbed, resnet_config, vit_config
from vitrail import Preprocessing
from vitrail.runtime.choice import EngineChoice
from vitrail.runtime.engine import TorchEngine
from vitrail.runtime.make import make_engine
from vitrail.verbs.engines import CLOSE, compare, sample_pixels

pytestmark = [
    pytest.mark.compiled,
    pytest.mark.filterwarnings("ignore"),  # torch's own compiler and exporter warn about torch
]
CONFIGS = {
    "class token": vit_config(),
    "grey, mean": vit_config(channels=1, pool="mean"),
    "hybrid": hybrid_config(),
    "resnet": resnet_config(),
}


@pytest.fixture(autouse=True)
def _cache(tmp_path, monkeypatch):
    monkeypatch.setenv("VITRAIL_CACHE", str(tmp_path / "cache"))


def engine_of(config) -> TorchEngine:
    channels = config.channels
    how = Preprocessing(image_size=config.image_size, mean=(0.4,) * channels, std=(0.3,) * channels)
    return TorchEngine(perturbed(config), how)


@pytest.mark.parametrize("name", CONFIGS)
def test_other_runtimes_agree_with_torch_on_real_images_for_any_batch(name) -> None:
    engine = engine_of(CONFIGS[name])
    images = sample_pixels(engine.preprocessing)
    expected, features = engine.logits(images), engine.features(images)
    for kind in ("onnxruntime", "openvino"):
        other = make_engine(engine, EngineChoice(engine=kind))
        assert (other.kind, other.device.type, other.num_outputs) == (kind, "cpu", engine.num_outputs)
        for batch in (1, 2, 7, 64):
            agreement, difference = compare(other.logits(images[:batch]).numpy(), expected[:batch].numpy())
            assert agreement == 1
            assert difference < CLOSE
        torch.testing.assert_close(other.features(images), features, atol=1e-4, rtol=1e-4)


def test_a_graph_is_made_once_and_stored(monkeypatch) -> None:
    engine, notes = engine_of(vit_config()), []
    make_engine(engine, EngineChoice(engine="onnxruntime"), note=notes.append)
    monkeypatch.setattr("vitrail.runtime.stored_graph.make_program", None)  # what is stored needs no program
    make_engine(engine, EngineChoice(engine="openvino"), note=notes.append)
    assert len(notes) == 1


def test_the_table_has_every_engine_and_its_agreement() -> None:
    model = perturbed(vit_config())
    table = vitrail.engines(model, batch=[1, 3], seconds=0.01, threads=1)
    assert table.failed == ()
    assert [(speed.engine, speed.batch) for speed in table.speeds] == [
        (name, batch) for name in ("torch", "compiled", "onnxruntime", "openvino") for batch in (1, 3)
    ]
    assert all(speed.agreement == 1 and speed.difference < CLOSE for speed in table.speeds)
    assert all(speed.memory > 50e6 and speed.start_up > 0.1 for speed in table.speeds)
    assert np.isfinite(table.limit)
