"""Every engine gives the same answers, on real images and with any number of them."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import vitrail
from tests.tiny import hybrid_config, perturbed, resnet_config, vit_config
from vitrail import Preprocessing
from vitrail.base.processor import has_bfloat16
from vitrail.runtime.choice import EngineChoice
from vitrail.runtime.engine import TorchEngine
from vitrail.runtime.make import make_engine
from vitrail.runtime.native_library import load_library
from vitrail.verbs.agreement import CLOSE, compare, sample_pixels

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


def engine_of(config, **pixels) -> TorchEngine:
    channels = config.channels
    how = Preprocessing(image_size=config.image_size, mean=(0.4,) * channels, std=(0.3,) * channels, **pixels)
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
    bytes_too = load_library().vitrail_int8()
    (*without, images) = table.failed
    assert images == "int8 was measured in native alone; the others need images to `calibrate` with."
    assert ["VNNI" in sentence for sentence in without] == ([] if bytes_too else [True])
    exact = [speed for speed in table.speeds if speed.precision == "float32"]
    assert [(speed.engine, speed.batch) for speed in exact] == [
        (name, batch) for name in ("torch", "compiled", "native", "onnxruntime", "openvino") for batch in (1, 3)
    ]
    assert all(speed.agreement == 1 and speed.difference < CLOSE for speed in exact)
    rounded = [speed for speed in table.speeds if speed.precision == "bfloat16"]
    names = ("torch", "compiled", "openvino") if has_bfloat16() else ()
    assert [(speed.engine, speed.batch) for speed in rounded] == [(name, batch) for name in names for batch in (1, 3)]
    assert all(speed.agreement >= 0.9 and CLOSE < speed.difference < 0.1 for speed in rounded)  # it does round
    in_bytes = [speed for speed in table.speeds if speed.precision == "int8"]
    assert [(speed.engine, speed.batch) for speed in in_bytes] == ([("native", 1), ("native", 3)] if bytes_too else [])
    assert all(speed.agreement >= 0.9 and CLOSE < speed.difference < 0.1 for speed in in_bytes)
    assert len(table.speeds) == len(exact) + len(rounded) + len(in_bytes)
    assert all(speed.memory > 50e6 and speed.start_up > 0.1 for speed in table.speeds)
    assert np.isfinite(table.limit)


def test_int8_of_a_model_that_was_not_exported_is_calibrated_once_and_agrees(monkeypatch) -> None:
    engine, notes = engine_of(vit_config(dim=64, mlp_dim=256), geometry="crop", crop_fraction=0.8), []
    images = sample_pixels(engine.preprocessing)
    for kind in ("onnxruntime", "openvino"):
        choice = EngineChoice(engine=kind, precision="int8", calibrate="sample")
        other = make_engine(engine, choice, note=notes.append)
        assert (other.kind, other.precision, other.dtype) == (kind, "int8", torch.int8)
        agreement, difference = compare(other.logits(images).numpy(), engine.logits(images).numpy())
        assert agreement >= 0.9
        assert CLOSE < difference < 0.1  # it does compute in int8
        monkeypatch.setattr("vitrail.runtime.stored_graph.quantise", None)  # the second finds what the first stored
    assert any("layers are in int8" in note for note in notes)


def test_the_table_has_int8_and_merged_tokens_beside_plain_torch() -> None:
    table = vitrail.engines(
        perturbed(vit_config()),
        batch=[2],
        engine=["onnxruntime", "openvino"],
        calibrate="sample",
        merge_tokens=2,
        seconds=0.01,
        threads=1,
    )
    assert table.failed == ()
    assert [speed.title for speed in table.speeds] == [
        *("onnxruntime float32, 2 tokens merged", "openvino float32, 2 tokens merged"),
        *(("openvino bfloat16, 2 tokens merged",) if has_bfloat16() else ()),
        *("onnxruntime int8, 2 tokens merged", "openvino int8, 2 tokens merged"),
    ]
    assert table.reference == "torch in float32"
    assert all(speed.difference > CLOSE for speed in table.speeds)  # merging is not the plain pass


@pytest.mark.parametrize("name", ["class token", "grey, mean", "hybrid"])
def test_merged_tokens_are_the_same_in_every_engine(name) -> None:
    engine = engine_of(CONFIGS[name])
    images = sample_pixels(engine.preprocessing)
    merged = make_engine(engine, EngineChoice(merge_tokens=2))
    expected, features = merged.logits(images), merged.features(images)
    assert (engine.logits(images) - expected).abs().max() > 1e-3
    assert merged.digest != engine.digest
    for kind in ("onnxruntime", "openvino", *(["compiled"] if name == "class token" else [])):
        other = make_engine(engine, EngineChoice(engine=kind, merge_tokens=2), batch=64)
        agreement, difference = compare(other.logits(images).numpy(), expected.numpy())
        assert (agreement, difference < CLOSE) == (1, True)
        torch.testing.assert_close(other.features(images), features, atol=1e-4, rtol=1e-4)


@pytest.mark.skipif(not torch.backends.mkl.is_available(), reason="only MKL packs weights")
def test_the_compiler_packs_the_weights() -> None:
    from torch._inductor.utils import run_and_get_code

    engine = engine_of(CONFIGS["class token"])
    images = sample_pixels(engine.preprocessing)[:4]
    logits, programs = run_and_get_code(replace(engine, compiled_batch=4).logits, images)
    torch.testing.assert_close(logits, engine.logits(images), atol=1e-5, rtol=1e-5)
    assert "_mkl_linear" in "".join(programs)
