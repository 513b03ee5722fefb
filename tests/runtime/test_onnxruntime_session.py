import numpy as np
import pytest

from vitrail import CheckpointError
from vitrail.runtime.onnxruntime_session import OnnxRuntimeSession

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

IMAGES = np.random.default_rng(0).normal(size=(9, 6)).astype(np.float32)
WEIGHTS = np.random.default_rng(1).normal(size=(6, 3)).astype(np.float32)


def write(path, weights, batch="batch"):
    helper = onnx.helper
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["images", "weights"], ["logits"]), helper.make_node("Neg", ["logits"], ["minus"])],
        "linear",
        [helper.make_tensor_value_info("images", onnx.TensorProto.FLOAT, [batch, 6])],
        [
            helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [batch, weights.shape[1]])
            for name in ("logits", "minus")
        ],
        [onnx.numpy_helper.from_array(weights, "weights")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    path.write_bytes(model.SerializeToString())
    return path


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_threads_that_share_a_batch_return_each_image_at_its_place(tmp_path, threads) -> None:
    session = OnnxRuntimeSession(write(tmp_path / "graph.onnx", WEIGHTS), threads=threads)
    for count in (1, 3, 4, 7, 9, 2):
        minus, logits = session.run(IMAGES[:count], ["minus", "logits"])
        np.testing.assert_allclose(logits, IMAGES[:count] @ WEIGHTS, rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(minus, -logits)
    assert (session.alone is not None) == (threads > 1)


def test_weights_are_in_memory_once_unless_small_and_large_batches_come(tmp_path) -> None:
    session = OnnxRuntimeSession(write(tmp_path / "graph.onnx", WEIGHTS), threads=2)
    session.run(IMAGES, ["logits"])
    assert session.together is None
    assert session.alone is not None
    session.run(IMAGES[:1], ["logits"])
    session.run(IMAGES, ["logits"])
    assert session.together is not None


@pytest.mark.parametrize("first", [1, 9])
def test_a_file_that_is_written_again_does_not_change_answers(tmp_path, first) -> None:
    path = write(tmp_path / "graph.onnx", WEIGHTS)
    session = OnnxRuntimeSession(path, threads=2)
    session.run(IMAGES[:first], ["logits"])
    write(path, np.zeros((6, 5), np.float32))
    for count in (1, 9):
        np.testing.assert_allclose(session.run(IMAGES[:count], ["logits"])[0], IMAGES[:count] @ WEIGHTS, atol=1e-5)
    path.unlink()
    for count in (9, 1):
        np.testing.assert_allclose(session.run(IMAGES[:count], ["logits"])[0], IMAGES[:count] @ WEIGHTS, atol=1e-5)


def test_a_graph_for_one_number_of_images_is_not_shared(tmp_path) -> None:
    session = OnnxRuntimeSession(write(tmp_path / "graph.onnx", WEIGHTS, batch=9), threads=2)
    np.testing.assert_allclose(session.run(IMAGES, ["logits"])[0], IMAGES @ WEIGHTS, atol=1e-5)
    assert session.alone is None


def test_an_image_that_does_not_fit_is_one_sentence_also_from_a_thread(tmp_path) -> None:
    session = OnnxRuntimeSession(write(tmp_path / "graph.onnx", WEIGHTS), threads=2)
    with pytest.raises(CheckpointError, match=r"failed in ONNX Runtime .* with images of 9x5"):
        session.run(IMAGES[:, :5], ["logits"])
