"""The native engine beside torch and the reference release, on real images; refusals of what it cannot do."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from tests.golden.test_jax import CONFIGS as RECORDED
from tests.golden.test_jax import recorded, tolerance
from tests.runtime.test_native_encoder import COMPILED, VNNI
from tests.tiny import hybrid_config, perturbed, vit_config
from vitrail import Classifier, ConfigError, Preprocessing, save
from vitrail.runtime.choice import EngineChoice
from vitrail.runtime.engine import Engine, TorchEngine
from vitrail.runtime.make import make_engine
from vitrail.runtime.native_encoder import native_model
from vitrail.verbs.agreement import CLOSE, compare, sample_pixels

CONFIGS = {
    "class token": vit_config(),
    "grey, mean": vit_config(channels=1, pool="mean"),
    "attention pooling": vit_config(pool="attention", gelu="erf"),
    "DINOv2": vit_config(registers=2, layer_scale=0.2, pool="class-and-mean"),
    "CLIP": vit_config(norm_embedded=True, gelu="quick", projection_size=20),
    "hybrid": hybrid_config(),
    "one block": vit_config(depth=1),
}
pytestmark = COMPILED
NATIVE, INT8 = EngineChoice(engine="native"), EngineChoice(engine="native", precision="int8")


def engine_of(config) -> TorchEngine:
    channels = config.channels
    how = Preprocessing(image_size=config.image_size, mean=(0.4,) * channels, std=(0.3,) * channels)
    return TorchEngine(perturbed(config), how)


@pytest.mark.parametrize("name", CONFIGS)
def test_it_agrees_with_torch_on_real_images_for_any_batch(name) -> None:
    engine = engine_of(CONFIGS[name])
    images = sample_pixels(engine.preprocessing)
    expected, features = engine.logits(images), engine.features(images)
    native = make_engine(engine, NATIVE)
    assert isinstance(native, Engine)
    assert (native.kind, native.precision, native.dtype) == ("native", "float32", torch.float32)
    assert (native.num_outputs, native.feature_width) == (engine.num_outputs, engine.feature_width)
    for batch in (1, 2, 7, 64):
        agreement, difference = compare(native.logits(images[:batch]).numpy(), expected[:batch].numpy())
        assert agreement == 1
        assert difference < CLOSE
    torch.testing.assert_close(native.features(images), features, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("name", RECORDED)
def test_it_gives_the_logits_of_the_reference_release(name) -> None:
    model, values = recorded(name)
    images = torch.tensor(values["images"].transpose(0, 3, 1, 2))
    with torch.inference_mode():
        logits = native_model(model, int8=False)(images).numpy()
    np.testing.assert_allclose(logits, values["logits"], atol=tolerance(name), rtol=0)


@VNNI
@pytest.mark.parametrize("name", CONFIGS)
def test_int8_needs_no_images_and_keeps_the_first_class(name) -> None:
    engine = engine_of(CONFIGS[name])
    images = sample_pixels(engine.preprocessing)
    native = make_engine(engine, INT8)
    assert (native.precision, native.dtype) == ("int8", torch.int8)
    agreement, difference = compare(native.logits(images).numpy(), engine.logits(images).numpy())
    assert agreement >= 0.9
    assert difference < 0.05
    assert difference > CLOSE  # it does compute in int8


def test_a_model_of_another_type_is_computed_in_float32() -> None:
    engine = engine_of(CONFIGS["class token"])
    images = sample_pixels(engine.preprocessing)[:4]
    twice = TorchEngine(perturbed(CONFIGS["class token"]).double(), engine.preprocessing)
    torch.testing.assert_close(make_engine(twice, NATIVE).logits(images), engine.logits(images), atol=1e-4, rtol=1e-4)
    assert twice.dtype == torch.float64


def test_the_digest_names_weights_and_precision_and_the_model_stays_as_it_was() -> None:
    engine = engine_of(CONFIGS["class token"])
    before = engine.digest
    other = TorchEngine(perturbed(CONFIGS["class token"], seed=1), engine.preprocessing)
    digests = {make_engine(one, NATIVE).digest for one in (engine, other)}
    assert len(digests | {before}) == 3
    assert make_engine(engine, NATIVE).digest in digests
    assert engine.digest == before


def test_a_classifier_predicts_with_it() -> None:
    model = perturbed(CONFIGS["class token"])
    image = np.random.default_rng(0).integers(0, 256, (20, 30, 3), dtype=np.uint8)
    own, native = (Classifier.of(model, engine=name).predict(image) for name in ("torch", "native"))
    assert own.label == native.label
    assert own.probability == pytest.approx(native.probability, abs=1e-4)


def test_auto_leaves_it_out_with_the_reason_for_a_model_with_other_blocks(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("VITRAIL_CACHE", str(tmp_path))
    notes = []
    with pytest.raises(ConfigError, match="no engine of native runs this model in int8"):
        make_engine(engine_of(vit_config(positions="relative")), replace(INT8, engine="auto"), note=notes.append)
    assert any("native does not run this model and was left out: " in note for note in notes)
    assert any("but the model has relative positions" in note for note in notes)


@VNNI
def test_auto_in_int8_without_images_says_that_it_is_the_only_one(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("VITRAIL_CACHE", str(tmp_path))
    notes = []
    auto = make_engine(engine_of(CONFIGS["one block"]), replace(INT8, engine="auto"), note=notes.append)
    assert auto.kind == "native"
    assert any("native is the only one: " in note for note in notes)
    assert not any("every engine" in note for note in notes)


@pytest.mark.parametrize(
    ("choice", "words"),
    [
        ({"precision": "bfloat16"}, "the engine native has no bfloat16 on CPUs; choose another `engine`, or float32"),
        ({"precision": "int8", "calibrate": "sample"}, "finds the range of every token itself in int8; leave out"),
        ({"merge_tokens": 2}, "`engine=native` merges no tokens; leave out `merge_tokens`"),
    ],
)
def test_what_it_would_not_read_is_refused(choice, words) -> None:
    with pytest.raises(ConfigError, match=words):
        make_engine(engine_of(CONFIGS["class token"]), EngineChoice(engine="native", **choice))


@pytest.mark.parametrize("config", [CONFIGS["DINOv2"], hybrid_config()])
def test_it_needs_nothing_of_the_memory_of_the_model(config) -> None:
    engine = engine_of(config)
    memory = {tensor.untyped_storage().data_ptr() for tensor in (*engine.model.parameters(), *engine.model.buffers())}
    native = make_engine(engine, NATIVE).engine.model
    own = {tensor.untyped_storage().data_ptr() for tensor in (*native.parameters(), *native.buffers())}
    assert not own & memory
    assert not any("blocks" in name for name, _ in native.named_parameters())


def test_a_model_that_is_owned_is_emptied_while_it_is_packed_and_computes_the_same() -> None:
    first, second = (
        engine_of(vit_config(dim=256, num_heads=4, mlp_dim=512)),
        engine_of(vit_config(dim=256, num_heads=4, mlp_dim=512)),
    )
    images, digest = sample_pixels(first.preprocessing)[:3], first.digest
    plain, owned = make_engine(first, NATIVE), make_engine(second, NATIVE, owned=True)
    assert torch.equal(owned.logits(images), plain.logits(images))
    assert owned.digest == plain.digest
    assert first.digest == digest
    assert sum(weight.numel() for weight in second.model.encoder.blocks.parameters()) == 0
    with pytest.raises(RuntimeError):  # and not zeros
        second.logits(images)


def test_a_classifier_gives_the_weights_of_a_file_away_and_keeps_those_of_a_model(tmp_path) -> None:
    model = perturbed(vit_config())
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    labels = [f"class {number}" for number in range(model.config.num_classes)]
    save(model, tmp_path / "model.safetensors", labels=labels)
    image = np.random.default_rng(0).integers(0, 256, (50, 40, 3), dtype=np.uint8)
    kept = Classifier.of(model, labels=labels, engine="native").predict(image)
    assert all(torch.equal(weight, before[name]) for name, weight in model.state_dict().items())
    assert Classifier.load(tmp_path / "model.safetensors", engine="native").predict(image).top == kept.top
