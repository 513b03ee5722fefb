import pytest
import torch

from tests.tiny import perturbed, vit_config
from vitrail import Classifier, ConfigError, Preprocessing
from vitrail.base.processor import has_bfloat16
from vitrail.runtime import choice as choices
from vitrail.runtime.choice import EngineChoice, check_installed
from vitrail.runtime.engine import TorchEngine
from vitrail.runtime.make import make_engine

PIXELS = Preprocessing(image_size=(12, 16))


@pytest.mark.usefixtures("unchecked")
def test_a_name_that_is_not_an_engine_is_refused_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match="Did you mean onnxruntime"):
        EngineChoice(engine="onxruntime")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="`precision` is 'int4', but must be one of float32, bfloat16, int8"):
        EngineChoice(precision="int4")  # type: ignore[arg-type]


@pytest.mark.parametrize(("engine", "extra"), [("onnxruntime", "onnx"), ("openvino", "openvino")])
def test_an_engine_that_is_not_installed_names_the_command(engine, extra, monkeypatch) -> None:
    monkeypatch.setattr(choices, "find_spec", lambda _: None)
    with pytest.raises(ConfigError, match=rf"pip install 'vitrail\[{extra}\]'"):
        check_installed(engine)
    with pytest.raises(ConfigError, match="not installed"):
        Classifier.of(perturbed(vit_config()), engine=engine)


def test_bfloat16_without_instructions_is_refused(monkeypatch) -> None:
    monkeypatch.setattr("vitrail.runtime.make.has_bfloat16", lambda: False)
    engine = TorchEngine(perturbed(vit_config()), PIXELS)
    with pytest.raises(ConfigError, match="no bfloat16 instructions"):
        make_engine(engine, EngineChoice(precision="bfloat16"))


def test_bfloat16_computes_in_it_and_leaves_the_model_as_it_was(monkeypatch) -> None:
    monkeypatch.setattr("vitrail.runtime.make.has_bfloat16", lambda: True)
    engine = TorchEngine(perturbed(vit_config()), PIXELS)
    pixels = torch.randint(0, 256, (2, 3, 12, 16), dtype=torch.uint8)
    made = make_engine(engine, EngineChoice(precision="bfloat16"))
    assert (made.dtype, engine.dtype) == (torch.bfloat16, torch.float32)
    torch.testing.assert_close(made.logits(pixels).float(), engine.logits(pixels), atol=0.2, rtol=0.1)
    with pytest.raises(ConfigError, match="ONNX Runtime has no bfloat16"):
        make_engine(engine, EngineChoice(engine="onnxruntime", precision="bfloat16"))


@pytest.mark.parametrize(
    ("choice", "words"),
    [
        ({"engine": "onnxruntime"}, "give some like those that the model will see, a few hundred, as `calibrate`"),
        ({"engine": "torch", "calibrate": "sample"}, "`engine=torch` does not compute in int8; give `engine=auto`"),
        ({"engine": "compiled"}, "`engine=compiled` does not compute in int8"),
        ({}, "`engine=torch` does not compute in int8"),
    ],
)
def test_int8_that_cannot_be_names_what_to_do(choice, words) -> None:
    engine = TorchEngine(perturbed(vit_config()), PIXELS)
    with pytest.raises(ConfigError, match=words):
        make_engine(engine, EngineChoice(precision="int8", **choice))


def test_int8_of_a_model_without_classes_is_refused() -> None:
    engine = TorchEngine(perturbed(vit_config(num_classes=0)), PIXELS)
    with pytest.raises(ConfigError, match="by the first class of images, but the model has no classes; use float32"):
        make_engine(engine, EngineChoice(engine="onnxruntime", precision="int8", calibrate="sample"))


def test_settings_that_nothing_would_read_are_refused() -> None:
    with pytest.raises(ConfigError, match="`calibrate` is for int8 alone; give `precision=int8` beside it"):
        EngineChoice(engine="openvino", calibrate="sample")
    with pytest.raises(ConfigError, match="merge_tokens is -3, but must be a whole number of at least 0"):
        EngineChoice(merge_tokens=-3)


def test_an_engine_merges_tokens_and_leaves_the_model_as_it_was() -> None:
    engine = TorchEngine(perturbed(vit_config()), PIXELS)
    pixels = torch.randint(0, 256, (2, 3, 12, 16), dtype=torch.uint8)
    merged = make_engine(engine, EngineChoice(merge_tokens=2))
    with torch.no_grad():
        assert torch.equal(merged.logits(pixels), engine.model(engine.inputs(pixels), merge_tokens=2))
        assert torch.equal(merged.features(pixels), engine.model.features(engine.inputs(pixels), merge_tokens=2))
    assert not torch.equal(merged.logits(pixels), engine.logits(pixels))
    with pytest.raises(ConfigError, match="positions inside its blocks"):
        make_engine(TorchEngine(perturbed(vit_config(positions="relative")), PIXELS), EngineChoice(merge_tokens=2))


@pytest.mark.parametrize(
    ("flags", "limit", "has"),
    [
        ("fma avx512f avx512_bf16", "", True),
        ("fma avx512f avx512_bf16", "AVX512_CORE", False),
        ("amx_tile amx_bf16", "", True),
        ("amx_tile amx_bf16", "AVX512_CORE_FP16", False),
        ("fma avx2 avx512f", "", False),
    ],
)
def test_bfloat16_is_what_the_processor_has_and_onednn_may_use(flags, limit, has, tmp_path) -> None:
    (tmp_path / "cpuinfo").write_text(f"processor\t: 0\nflags\t\t: {flags}\n\n")
    assert has_bfloat16(tmp_path / "cpuinfo", {"ONEDNN_MAX_CPU_ISA": limit}) == has


def test_an_engine_takes_no_other_engine() -> None:
    engine = TorchEngine(perturbed(vit_config()), PIXELS)
    with pytest.raises(ConfigError, match="computes as it does"):
        Classifier.of(engine, engine="compiled")
