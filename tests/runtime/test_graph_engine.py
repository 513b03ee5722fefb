import numpy as np
import pytest
import torch

from vitrail import Preprocessing
from vitrail.runtime.graph_engine import GraphEngine

PIXELS = Preprocessing(image_size=(4, 6))


class Means:
    """Gives the mean of each channel, for one number of images only, or for any."""

    name, version, kind = "onnxruntime", "0", "uint8"
    outputs, output_shapes, properties = ("logits",), ((None, 3),), {}

    def __init__(self, size):
        self.shape, self.sizes = (size, 4, 6, 3), []

    def run(self, images, outputs):
        self.sizes.append(len(images))
        assert list(outputs) == ["logits"]
        return [images.mean((1, 2), dtype=np.float32)]


@pytest.mark.parametrize(
    ("size", "count", "sizes"),
    [(None, 5, [5]), (1, 3, [1, 1, 1]), (2, 5, [2, 2, 2]), (8, 3, [8]), (4, 4, [4])],
    ids=["any", "one", "two", "more", "equal"],
)
def test_a_graph_for_one_number_of_images_gets_that_many_at_a_time(size, count, sizes) -> None:
    session = Means(size)
    engine = GraphEngine(session, PIXELS, num_outputs=3, feature_width=0, source="test")
    pixels = torch.randint(0, 256, (count, 3, 4, 6), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(engine.logits(pixels), pixels.float().mean((2, 3)))
    assert session.sizes == sizes
