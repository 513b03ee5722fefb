import json

import pytest

from tests.tiny import perturbed, vit_config
from vitrail import ConfigError, Preprocessing
from vitrail.runtime import auto
from vitrail.runtime.choice import EngineChoice
from vitrail.runtime.engine import TorchEngine
from vitrail.runtime.make import make_engine
from vitrail.runtime.timing import Timing, gemm_peak, time_engine

PIXELS = Preprocessing(image_size=(12, 16))


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("VITRAIL_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_auto_measures_once_for_a_model_and_takes_the_fastest(cache, monkeypatch) -> None:
    calls = []

    def measured(*arguments):
        calls.append(arguments[3])
        return {"torch": 10.0, "compiled": 20.0}

    monkeypatch.setattr(auto, "_measured", measured)
    engine, notes = TorchEngine(perturbed(vit_config()), PIXELS), []
    assert auto.fastest(engine, EngineChoice(), batch=4, note=notes.append) == "compiled"
    assert auto.fastest(engine, EngineChoice(), batch=4, note=notes.append) == "compiled"
    assert calls == [4]
    assert any("compiled is the fastest: torch 10.0 images/s, compiled 20.0 images/s" in note for note in notes)
    assert make_engine(engine, EngineChoice(engine="auto"), batch=4).kind == "compiled"
    auto.fastest(engine, EngineChoice(), batch=8, note=notes.append)
    auto.fastest(TorchEngine(perturbed(vit_config(), seed=1), PIXELS), EngineChoice(), batch=4, note=notes.append)
    assert calls == [4, 8, 4]
    assert len(json.loads((cache / "engines.json").read_text())) == 3
    monkeypatch.setattr(auto, "VERSION", auto.VERSION + 1)  # as when an engine of ours becomes faster
    auto.fastest(engine, EngineChoice(), batch=4, note=notes.append)
    assert calls == [4, 8, 4, 4]


@pytest.mark.usefixtures("cache")
def test_in_int8_only_engines_that_have_it_are_measured(monkeypatch) -> None:
    names = []
    monkeypatch.setattr(auto, "_measured", lambda *arguments: names.append(arguments[2]) or {"openvino": 2.0})
    engine = TorchEngine(perturbed(vit_config()), PIXELS)
    choice = EngineChoice(engine="auto", precision="int8", calibrate="sample")
    assert auto.fastest(engine, choice, batch=1, note=lambda _: None) == "openvino"
    assert names == [["native", "onnxruntime", "openvino"]]
    monkeypatch.setattr(auto, "_measured", lambda *_: {})
    words = "no engine of native, onnxruntime, openvino runs this model in int8; use float32.$"
    with pytest.raises(ConfigError, match=words):
        auto.fastest(engine, choice, batch=2, note=lambda _: None)


@pytest.mark.usefixtures("cache")
def test_an_engine_is_measured_where_it_can_have_the_choice() -> None:
    def names(**choice) -> list[str]:
        return [name for name in auto.CANDIDATES if auto.fitting(EngineChoice(engine="auto", **choice), name)]

    assert names() == ["torch", "compiled", "native", "onnxruntime", "openvino"]
    assert names(precision="bfloat16") == ["torch", "compiled", "openvino"]
    assert names(merge_tokens=2) == ["torch", "compiled", "onnxruntime", "openvino"]
    assert names(precision="int8") == ["native"]  # the others need images
    native = auto.fitting(EngineChoice(engine="auto", precision="int8", calibrate="sample"), "native")
    assert native == EngineChoice(engine="native", precision="int8")
    relative = TorchEngine(perturbed(vit_config(positions="relative")), PIXELS)
    with pytest.raises(ConfigError, match=r"no engine of native runs .* use float32, or give images as `calibrate`"):
        make_engine(relative, EngineChoice(engine="auto", precision="int8"))


def test_a_damaged_store_of_measurements_is_made_again(cache, monkeypatch) -> None:
    monkeypatch.setattr(auto, "_measured", lambda *_: {"torch": 1.0})
    cache.mkdir()
    (cache / "engines.json").write_text('{"half')
    assert (
        auto.fastest(TorchEngine(perturbed(vit_config()), PIXELS), EngineChoice(), batch=1, note=lambda _: None)
        == "torch"
    )
    assert json.loads((cache / "engines.json").read_text())


@pytest.mark.usefixtures("cache")
def test_an_engine_that_fails_is_left_out_with_a_note(monkeypatch) -> None:
    def make(engine, choice, **_):
        if choice.engine != "torch":
            raise RuntimeError("no compiler")
        return engine

    monkeypatch.setattr("vitrail.runtime.make.make_engine", make)
    notes = []
    engine = TorchEngine(perturbed(vit_config()), PIXELS)
    assert auto.fastest(engine, EngineChoice(), batch=1, note=notes.append) == "torch"
    assert any("compiled does not run this model and was left out: no compiler" in note for note in notes)


@pytest.mark.usefixtures("cache")
def test_what_is_not_installed_is_named_with_its_command(monkeypatch) -> None:
    monkeypatch.setattr("vitrail.runtime.choice.find_spec", lambda _: None)
    monkeypatch.setattr(auto, "_measured", lambda *_: {"torch": 1.0})
    notes = []
    auto.fastest(TorchEngine(perturbed(vit_config()), PIXELS), EngineChoice(), batch=1, note=notes.append)
    assert any("pip install 'vitrail[onnx]'" in note for note in notes)
    assert any("pip install 'vitrail[openvino]'" in note for note in notes)


def test_figures_of_passes_are_those_of_their_times() -> None:
    timing = Timing(batch=4, seconds=tuple(number / 100 for number in range(1, 102)))
    assert timing.median == 0.51
    assert timing.images_per_second == pytest.approx(4 / 0.51)
    assert timing.slow == 1.0  # 100 of 101 passes took at most as long


def test_an_engine_is_timed_for_as_long_as_asked() -> None:
    timing = time_engine(TorchEngine(perturbed(vit_config()), PIXELS), 2, seconds=0.02)
    assert sum(timing.seconds) >= 0.02
    assert len(timing.seconds) >= 3
    assert gemm_peak(rows=64, inner=64, columns=64, seconds=0.01) > 0
