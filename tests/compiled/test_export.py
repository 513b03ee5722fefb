"""Exported files, run by the runtimes that others use."""

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import vitrail
from tests.data.pictures import photo
from tests.tiny import LATER, POSITIONS, hybrid_config, perturbed, resnet_config, vit_config
from vitrail import CheckpointError, Classifier, ConfigError, InputError, Preprocessing
from vitrail.cli.main import main
from vitrail.runtime import exported

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")
openvino = pytest.importorskip("openvino")

pytestmark = [
    pytest.mark.compiled,
    pytest.mark.filterwarnings("ignore"),  # torch's own exporter warns about torch
]
LABELS = [f"class {number}" for number in range(7)]
CROP = {"geometry": "crop", "crop_fraction": 0.875, "interpolation": "bicubic", "antialias": True}


def saved(folder: Path, config=None, **pixels) -> Path:
    config = vit_config() if config is None else config
    how = Preprocessing(
        image_size=config.image_size, mean=(0.4,) * config.channels, std=(0.3,) * config.channels, **pixels
    )
    labels = LABELS if config.num_classes else None
    vitrail.save(perturbed(config), folder / "model.safetensors", labels=labels, preprocessing=how)
    return folder / "model.safetensors"


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A model, its exports, and photos of several sizes."""
    folder = tmp_path_factory.mktemp("export")
    model = saved(folder, **CROP)
    vitrail.export(model, folder / "model.onnx", attention="all")
    vitrail.export(model, folder / "model.xml")
    (folder / "photos").mkdir()
    for seed in range(5):
        photo(seed).resize((60 + 30 * seed, 80)).save(folder / "photos" / f"{seed}.jpg", quality=95)
    photo(7).convert("L").save(folder / "photos" / "grey.png")
    return folder


def probabilities(place: Path, file: str) -> np.ndarray:
    answers = Classifier.load(place / file, device="cpu").predict(sorted((place / "photos").glob("*")), top=7)
    return np.array([[dict(answer.top)[label] for label in LABELS] for answer in answers])


def test_the_file_is_valid_whole_and_describes_itself(place) -> None:
    proto = onnx.load(place / "model.onnx", load_external_data=False)
    onnx.checker.check_model(proto, full_check=True)
    assert [path.name for path in sorted(place.glob("model.*"))] == [
        *("model.bin", "model.onnx", "model.safetensors", "model.xml")
    ]
    (images,) = proto.graph.input
    assert [side.dim_param != "" for side in images.type.tensor_type.shape.dim] == [True, True, True, False]
    assert {entry.key for entry in proto.metadata_props} == {"vitrail", "vitrail.digest"}
    exported = Classifier.load(place / "model.onnx")
    assert exported.labels == tuple(LABELS)
    assert exported.info.provenance["versions"]["vitrail"] == vitrail.__version__


@pytest.mark.parametrize("file", ["model.onnx", "model.xml"])
def test_predictions_are_those_of_the_weights(place, file) -> None:
    expected = probabilities(place, "model.safetensors")
    assert np.abs(probabilities(place, file) - expected).max() < 1e-5


@pytest.mark.parametrize("engine", ["onnxruntime", "openvino"])
@pytest.mark.parametrize("batch", [1, 2, 7, 64])
def test_whole_images_in_any_number_give_every_output(place, engine, batch) -> None:
    image = np.asarray(Image.open(place / "photos" / "2.jpg"))
    images = np.stack([np.roll(image, number, axis=0) for number in range(batch)])
    if engine == "onnxruntime":
        session = onnxruntime.InferenceSession(place / "model.onnx")
        names = [output.name for output in session.get_outputs()]
        outputs = dict(zip(names, session.run(None, {"images": images}), strict=True))
    else:
        compiled = openvino.Core().compile_model(place / "model.onnx", "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
        outputs = {output.get_any_name(): values for output, values in compiled([images]).items()}
    model = vitrail.load(place / "model.safetensors")
    with torch.no_grad():
        inputs = model.info.preprocessing(list(images))
        logits, features = model(inputs), model.features(inputs)
        maps = torch.stack([*model.attention_maps(inputs).values()], dim=1)
    close = {"atol": 0.02, "rtol": 0.02}  # a level of 255 in some pixels
    np.testing.assert_allclose(outputs["logits"], logits, **close)
    np.testing.assert_allclose(outputs["representation"], features, **close)
    np.testing.assert_allclose(outputs["attention"], maps, **close)
    shares = np.exp(outputs["logits"]) / np.exp(outputs["logits"]).sum(1, keepdims=True)
    np.testing.assert_allclose(outputs["probabilities"], shares, atol=1e-6)
    np.testing.assert_array_equal(outputs["top_classes"], np.argsort(-shares, axis=1, kind="stable")[:, :5])
    np.testing.assert_allclose(outputs["top_probabilities"], -np.sort(-shares, axis=1)[:, :5], atol=1e-6)


PROGRAM = """
import sys
from vitrail.cli.main import main
code = main(sys.argv[1:])
assert "torch" not in sys.modules, "torch was imported"
sys.exit(code)
"""


@pytest.mark.parametrize("file", ["model.onnx", "model.xml"])
def test_a_folder_is_classified_in_a_process_without_torch(place, file, tmp_path: Path) -> None:
    (place / "photos" / "broken.jpg").write_bytes(b"\xff\xd8\xff no photo")
    out = tmp_path / "predictions.csv"
    command = [sys.executable, "-c", PROGRAM, "predict", str(place / file), str(place / "photos"), "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ, check=False)
    (place / "photos" / "broken.jpg").unlink()
    assert done.returncode == 0, done.stderr
    assert "broken.jpg" in done.stderr
    with out.open() as lines:
        rows = {Path(row["path"]).name: row for row in csv.DictReader(lines)}
    assert rows["broken.jpg"]["error"]
    expected = Classifier.load(place / "model.safetensors").predict(sorted((place / "photos").glob("*")), top=1)
    for answer in expected:
        row = rows[Path(answer.name).name]
        assert row["label"] == answer.label
        assert float(row["probability"]) == pytest.approx(answer.probability, abs=0.01)


def test_a_single_photo_is_answered_with_the_weights_as_they_lie_in_the_file(place, monkeypatch, capsys) -> None:
    opened = []
    genuine = exported.open_exported
    monkeypatch.setattr(
        "vitrail.verbs.predict_exported.open_exported",
        lambda *words, **settings: opened.append(genuine(*words, **settings)) or opened[-1],
    )
    photos = sorted(str(path) for path in (place / "photos").glob("*.jpg"))
    answers = {}
    for words in (photos[:1], photos, [str(place / "photos")]):
        assert main(["predict", str(place / "model.onnx"), *words, "--json"]) == 0
        answers[len(words)] = json.loads(capsys.readouterr().out)["predictions"][0]["top"][0]["probability"]
    assert [one.session.once for one in opened] == [True, False, False]
    assert answers[1] == pytest.approx(answers[len(photos)], abs=1e-5)


def test_evaluate_and_fewshot_take_the_file_like_any_model(place) -> None:
    data = vitrail.data.open("sample", split="test").take(np.arange(40))
    settings = {"class_map": {name: [f"class {number % 7}"] for number, name in enumerate(data.labels)}}
    ours = vitrail.evaluate(place / "model.onnx", data, resamples=100, **settings)
    theirs = vitrail.evaluate(place / "model.safetensors", data, resamples=100, **settings)
    assert (ours.answers.predicted == theirs.answers.predicted).all()
    assert ours.digest != theirs.digest


FAMILIES = {
    **{f"{kind}, {where}": vit_config(positions=kind, position_placement=where) for kind, where in POSITIONS[::3]},
    "relative, mean": vit_config(positions="relative", pool="mean"),
    "attention pool, tanh layer": vit_config(pool="attention", representation_size=16),
    "grey": vit_config(channels=1),
    "no classes": vit_config(num_classes=0),
    "hybrid": hybrid_config(),
    "resnet": resnet_config(),
    **{name: vit_config(**LATER[name]) for name in ("DINOv3", "DINOv2 giant", "distilled", "trimmed", "CLIP")},
}


@pytest.mark.parametrize("name", FAMILIES)
def test_every_family_exports_and_runs_in_both_runtimes(name, tmp_path: Path) -> None:
    model = saved(tmp_path, FAMILIES[name])
    result = vitrail.export(model, tmp_path / "model.onnx")
    assert result.difference < 1e-4
    assert result.agreement in (None, 1.0)
    table = vitrail.engines(tmp_path / "model.onnx", batch=[2], engine=["openvino"], seconds=0.01)
    assert table.failed == ()
    assert table.speeds[0].difference < 1e-4


def test_a_raw_graph_takes_the_models_own_input(place, tmp_path: Path) -> None:
    result = vitrail.export(place / "model.safetensors", tmp_path / "raw.onnx", raw=True)
    assert result.difference < 1e-4
    session = onnxruntime.InferenceSession(tmp_path / "raw.onnx")
    assert session.get_inputs()[0].type == "tensor(float)"
    assert session.get_inputs()[0].shape[1:] == [3, 12, 16]
    one, other = (
        Classifier.load(path, device="cpu").predict(place / "photos" / "1.jpg")
        for path in (tmp_path / "raw.onnx", place / "model.safetensors")
    )
    assert one.label == other.label
    assert one.probability == pytest.approx(other.probability, abs=1e-5)


def test_a_program_of_torch_export_runs_in_torch(place, tmp_path: Path) -> None:
    vitrail.export(place / "model.safetensors", tmp_path / "model.pt2")
    extra = {"vitrail.json": ""}
    program = torch.export.load(tmp_path / "model.pt2", extra_files=extra)
    image = torch.from_numpy(np.array(Image.open(place / "photos" / "0.jpg")))[None]
    answer = Classifier.load(place / "model.safetensors").predict(place / "photos" / "0.jpg", top=1)
    outputs = program.module()(image)
    assert LABELS[int(outputs["top_classes"][0, 0])] == answer.label
    assert '"class 6"' in str(extra["vitrail.json"])
    with pytest.raises(ConfigError, match="is a program of torch"):
        vitrail.predict(tmp_path / "model.pt2", place / "photos" / "0.jpg")


def test_a_damaged_file_is_refused(place, tmp_path: Path) -> None:
    content = bytearray((place / "model.onnx").read_bytes())
    content[len(content) // 2] ^= 1
    (tmp_path / "model.onnx").write_bytes(content)
    with pytest.raises(CheckpointError, match="damaged"):
        vitrail.predict(tmp_path / "model.onnx", place / "photos" / "0.jpg")
    (tmp_path / "model.onnx").write_bytes(content[:1000])
    with pytest.raises(CheckpointError, match=r"not an ONNX file|does not run|damaged"):
        vitrail.predict(tmp_path / "model.onnx", place / "photos" / "0.jpg")
    (tmp_path / "model.xml").write_bytes((place / "model.xml").read_bytes())
    with pytest.raises(CheckpointError, match="belong together"):
        vitrail.predict(tmp_path / "model.xml", place / "photos" / "0.jpg")


def graph_of_another_tool(path: Path, inputs: int = 1) -> None:
    """A graph of (batch, 3, 4, 4) -> (batch, 2): the mean of the first two channels."""
    helper, kinds = onnx.helper, onnx.TensorProto
    images = [helper.make_tensor_value_info(f"input{number}", kinds.FLOAT, ["n", 3, 4, 4]) for number in range(inputs)]
    picked = helper.make_tensor("picked", kinds.INT64, [2], [0, 1])
    axes = helper.make_tensor("axes", kinds.INT64, [2], [2, 3])
    nodes = [
        helper.make_node("Gather", ["input0", "picked"], ["two"], axis=1),
        helper.make_node("ReduceMean", ["two", "axes"], ["scores"], keepdims=0),
    ]
    scores = helper.make_tensor_value_info("scores", kinds.FLOAT, ["n", 2])
    graph = helper.make_graph(nodes, "g", images, [scores], [picked, axes])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10), path)


def test_a_graph_of_another_tool_is_taken_with_labels_and_a_way_to_prepare_images(tmp_path: Path) -> None:
    graph_of_another_tool(tmp_path / "other.onnx")
    red = np.zeros((9, 9, 3), np.uint8)
    red[:, :, 0] = 255
    with pytest.raises(CheckpointError, match="does not say how images become its input; name its way by `arch"):
        vitrail.predict(tmp_path / "other.onnx", red)
    answer = vitrail.predict(tmp_path / "other.onnx", red, architecture="google", labels=["red", "green"])
    assert answer.label == "red"
    assert answer.probability == pytest.approx(1 / (1 + np.exp(-2)))  # scores 1 and -1


def test_what_cannot_be_run_or_exported_is_refused_in_one_sentence(place, tmp_path: Path) -> None:
    model, image = place / "model.safetensors", place / "photos" / "0.jpg"
    graph_of_another_tool(tmp_path / "two.onnx", inputs=2)
    with pytest.raises(CheckpointError, match=r"2 inputs \(input0, input1\), but a graph with one"):
        vitrail.predict(tmp_path / "two.onnx", image, architecture="google")
    for settings, words in (
        ({"opset": 11}, "`opset` is 11, but graphs can be written with 18 to"),
        ({"format": "openvino"}, "ends in .onnx; end it in .xml"),
    ):
        with pytest.raises(ConfigError, match=words):
            vitrail.export(model, tmp_path / "new.onnx", **settings)
    with pytest.raises(ConfigError, match="has no attention maps; leave out `attention`"):
        vitrail.export(perturbed(resnet_config()), tmp_path / "new.onnx", attention="all")
    with pytest.raises(ConfigError, match="is a graph already"):
        vitrail.export(place / "model.onnx", tmp_path / "new.onnx")
    for settings, words in (
        ({"engine": "torch"}, "does not run in torch; choose onnxruntime or openvino"),
        ({"precision": "int8"}, "exported in float32"),
        ({"image_size": 32}, "leave out `image_size`"),
        ({"architecture": "google"}, "leave out `architecture`"),
    ):
        with pytest.raises(ConfigError, match=words):
            vitrail.predict(place / "model.onnx", image, **settings)
    assert not list(tmp_path.glob("new*"))


def test_a_pass_that_no_graph_can_express_is_refused_in_one_sentence(tmp_path: Path) -> None:
    model = perturbed(vit_config())
    plain = model.features
    model.features = lambda images: plain(images if images.sum() > 0 else -images)  # steps depend on numbers
    with pytest.raises(InputError, match=r"cannot record the pass of this .*; a graph needs a pass whose steps do not"):
        vitrail.export(model, tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())
