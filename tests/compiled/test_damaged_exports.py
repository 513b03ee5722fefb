"""Exported files and stored graphs that were changed: by their facts, behind the runtime's back, or in the cache."""

import json
from pathlib import Path

import numpy as np
import pytest

import vitrail
from tests.tiny import perturbed, vit_config
from vitrail import CheckpointError, InputError, Preprocessing
from vitrail.base.files import cache_folder
from vitrail.runtime.card import KEY
from vitrail.runtime.choice import EngineChoice
from vitrail.runtime.digest import NO_DIGEST, signed
from vitrail.runtime.engine import TorchEngine
from vitrail.runtime.exported import open_exported
from vitrail.runtime.make import make_engine

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
pytest.importorskip("openvino")
pytestmark = [pytest.mark.compiled, pytest.mark.filterwarnings("ignore")]
IMAGE = np.arange(20 * 30 * 3, dtype=np.uint8).reshape(20, 30, 3)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("exports")
    model = perturbed(vit_config())
    for out in ("model.onnx", "model.xml", "model.pt2"):
        vitrail.export(model, folder / out, labels=[f"class {number}" for number in range(7)], threads=1)
    return folder


def with_facts(content: bytes, **changes: object) -> bytes:
    """Return an ONNX file with other facts, and a digest that is right."""
    proto = onnx.load_from_string(content)
    facts = {entry.key: entry.value for entry in proto.metadata_props}
    facts = {KEY: json.dumps(json.loads(facts[KEY]) | changes), f"{KEY}.digest": NO_DIGEST}
    onnx.helper.set_model_props(proto, facts)
    return signed([proto.SerializeToString()])[0]


def test_facts_without_a_digest_are_refused(place, tmp_path: Path) -> None:
    proto = onnx.load_from_string((place / "model.onnx").read_bytes())
    facts = {entry.key: entry.value for entry in proto.metadata_props}
    onnx.helper.set_model_props(proto, {KEY: facts[KEY]})
    (tmp_path / "model.onnx").write_bytes(proto.SerializeToString())
    with pytest.raises(CheckpointError, match="has facts of an exported model but no digest"):
        vitrail.predict(tmp_path / "model.onnx", IMAGE)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"labels": ["one", "two"]}, "2 names of 7 classes"),
        ({"num_classes": 3, "labels": None}, "logits of .* where 3 numbers were to be"),
        ({"outputs": ["logits", "wings"]}, "no output wings"),
        ({"entry": "input"}, "an input of uint8 and .* for inputs of"),
        ({"feature_width": 1}, "representation of .* where 1 numbers were to be"),
    ],
)
def test_facts_that_the_graph_contradicts_are_refused(place, tmp_path: Path, changes, words: str) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(with_facts((place / "model.onnx").read_bytes()))
    assert vitrail.predict(path, IMAGE).label == vitrail.predict(place / "model.onnx", IMAGE).label
    path.write_bytes(with_facts((place / "model.onnx").read_bytes(), **changes))
    with pytest.raises(CheckpointError, match=f"contradicts its own facts: .*{words}"):
        vitrail.predict(path, IMAGE)


@pytest.mark.parametrize("name", [b"vitrail.digest", b"representation"])
def test_names_that_are_not_letters_are_refused_in_one_sentence(place, tmp_path: Path, name: bytes) -> None:
    content = (place / "model.onnx").read_bytes().replace(b"vitrail-sha256", b"vitrail-sha---")
    (tmp_path / "model.onnx").write_bytes(content.replace(name, b"\xff" * len(name)))
    with pytest.raises(CheckpointError, match=r"model\.onnx (does not run in ONNX Runtime|is not an ONNX file)"):
        vitrail.predict(tmp_path / "model.onnx", IMAGE)


@pytest.mark.parametrize("file", ["model.onnx", "model.xml"])
def test_a_batch_that_a_graph_cannot_take_is_refused_in_one_sentence(place, file: str) -> None:
    session = open_exported(place / file, EngineChoice(), threads=1).session
    for shape in ((1, 8, 8), (1, 8, 8, 9)):
        size = "x".join(map(str, shape))
        with pytest.raises(CheckpointError, match=rf"{file} failed in .* with images of {size}: "):
            session.run(np.zeros(shape, np.uint8), ["logits"])


@pytest.mark.parametrize(("file", "weights"), [("model.onnx", "model.onnx"), ("model.xml", "model.bin")])
def test_a_file_that_is_overwritten_while_it_is_open_changes_no_answer(place, file: str, weights: str) -> None:
    session = open_exported(place / file, EngineChoice(), threads=1).session
    content = (place / weights).read_bytes()
    try:
        with (place / weights).open("r+b") as stream:
            stream.write(bytes(len(content)))
        (after,) = session.run(IMAGE[None], ["logits"])
    finally:
        (place / weights).write_bytes(content)
    (expected,) = open_exported(place / file, EngineChoice(), threads=1).session.run(IMAGE[None], ["logits"])
    np.testing.assert_array_equal(after, expected)


def test_a_stored_graph_that_is_damaged_is_made_again(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setenv("VITRAIL_CACHE", str(tmp_path))
    model = perturbed(vit_config())
    engine = TorchEngine(model, Preprocessing(image_size=model.config.image_size))
    choice, notes = EngineChoice(engine="onnxruntime"), []
    make_engine(engine, choice, note=notes.append)
    (path,) = (cache_folder() / "graphs").iterdir()
    content = path.read_bytes()
    for damaged in (bytes([*content[:-9], content[-9] ^ 1, *content[-8:]]), content[: len(content) // 2], b""):
        path.write_bytes(damaged)
        notes.clear()
        make_engine(engine, choice, note=notes.append)
        assert any(f"{path} is damaged, and is made again" in note for note in notes)
    notes.clear()
    make_engine(engine, choice, note=notes.append)
    assert not notes


def test_an_exported_file_may_be_replaced_by_another_export_and_no_other_file(place, tmp_path: Path) -> None:
    for name in ("model.onnx", "model.xml", "model.bin", "model.pt2"):
        (tmp_path / name).write_bytes((place / name).read_bytes())
    for name in ("model.onnx", "model.xml", "model.pt2"):
        with pytest.raises(vitrail.ConfigError, match="`opset` is 1"):  # which is checked after the outputs
            vitrail.export(perturbed(vit_config()), tmp_path / name, opset=1)
    (tmp_path / "model.xml").unlink()
    with pytest.raises(InputError, match=r"model\.bin exists and is not the weights of an exported model"):
        vitrail.export(perturbed(vit_config()), tmp_path / "model.xml")
