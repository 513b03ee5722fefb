import numpy as np
import pytest

from vitrail import CheckpointError
from vitrail.runtime.onnx_mapped import LEAST, without_weights
from vitrail.runtime.onnxruntime_session import OnnxRuntimeSession

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

RANDOM = np.random.default_rng(0)
WEIGHTS = {
    "matrix": RANDOM.normal(size=(40, 30)).astype(np.float32),
    "bytes": RANDOM.integers(-128, 128, (2 * LEAST,)).astype(np.int8),
    "bias": RANDOM.normal(size=30).astype(np.float32),
}
FIELDS = {"indices": np.arange(LEAST), "halves": np.linspace(0, 1, LEAST, dtype=np.float32)}
"""Tensors whose numbers are in fields of their own type, not in one of bytes."""


def write(path):
    helper, numbers = onnx.helper, onnx.numpy_helper
    typed = [
        helper.make_tensor("indices", onnx.TensorProto.INT64, [LEAST], FIELDS["indices"]),
        helper.make_tensor("halves", onnx.TensorProto.FLOAT, [LEAST], FIELDS["halves"]),
    ]
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["images", "matrix"], ["product"]),
            helper.make_node("Add", ["product", "bias"], ["logits"]),
        ],
        "linear",
        [helper.make_tensor_value_info("images", onnx.TensorProto.FLOAT, ["batch", 40])],
        [helper.make_tensor_value_info("logits", onnx.TensorProto.FLOAT, ["batch", 30])],
        [*(numbers.from_array(value, name) for name, value in WEIGHTS.items()), *typed],
    )
    for one in graph.initializer:  # as ONNX's quantiser leaves them; protobuf writes it behind the numbers
        one.data_location = onnx.TensorProto.DEFAULT
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    helper.set_model_props(model, {"title": "x" * 3 * LEAST})
    path.write_bytes(model.SerializeToString())
    return path


def test_large_tensors_refer_to_the_file_and_everything_else_stays(tmp_path) -> None:
    path = write(tmp_path / "a graph, ü%20.onnx")
    small = without_weights(path)
    model, whole = onnx.load_model_from_string(small), onnx.load(path)
    elsewhere = {one.name for one in model.graph.initializer if one.data_location == onnx.TensorProto.EXTERNAL}
    assert elsewhere == {"matrix", "bytes"}
    onnx.external_data_helper.load_external_data_for_model(model, str(tmp_path))  # ONNX's own reader
    for one in model.graph.initializer:
        expected = {**WEIGHTS, **FIELDS}[one.name]
        np.testing.assert_array_equal(onnx.numpy_helper.to_array(one), expected)
    for part in (model, whole):
        del part.graph.initializer[:]
    assert model == whole


@pytest.mark.parametrize("linked", [False, True])
def test_a_session_for_one_image_maps_its_weights(tmp_path, linked, monkeypatch) -> None:
    path = write(tmp_path / "a graph, ü%20.onnx")
    if linked:
        (tmp_path / "links").mkdir()
        link = tmp_path / "links" / "graph.onnx"
        link.symlink_to(path)
        monkeypatch.chdir(link.parent)
        path = link.relative_to(link.parent)
    images = RANDOM.normal(size=(1, 40)).astype(np.float32)
    session = OnnxRuntimeSession(path, threads=1, once=True)
    (logits,) = session.run(images, ["logits"])
    np.testing.assert_allclose(logits, images @ WEIGHTS["matrix"] + WEIGHTS["bias"], rtol=1e-4, atol=1e-4)
    (usual,) = OnnxRuntimeSession(path, threads=1).run(images, ["logits"])
    np.testing.assert_allclose(logits, usual, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("content", [b"not a graph", b"\x3a\xff\x7f", b"\x08"])
def test_what_is_not_an_onnx_file_is_refused_by_the_runtime(tmp_path, content) -> None:
    path = tmp_path / "graph.onnx"
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match=r"the graph does not run in ONNX Runtime .*INVALID_PROTOBUF"):
        OnnxRuntimeSession(path, threads=1, once=True)
