import numpy as np
import pytest

from vitrail.runtime.openvino_session import OpenVinoSession

openvino = pytest.importorskip("openvino")


def test_processes_side_by_side_are_not_bound_to_the_same_core() -> None:
    from openvino import opset13

    images = opset13.parameter([-1, 3, 2, 2], np.float32, name="images")
    images.output(0).get_tensor().set_names({"images"})
    scores = opset13.relu(images)
    scores.output(0).get_tensor().set_names({"logits"})
    session = OpenVinoSession(openvino.Model([scores], [images]), threads=1)
    assert session.compiled.get_property("ENABLE_CPU_PINNING") is False
    np.testing.assert_array_equal(session.run(-np.ones((1, 3, 2, 2), np.float32), ["logits"])[0], 0)
