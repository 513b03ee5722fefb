"""The network that a command computes with."""

from pathlib import Path

import pytest
import torch

from tests.verbs.making import model_file
from vitrail.verbs.network import FileSettings, open_network

pytestmark = pytest.mark.usefixtures("unchecked")


@pytest.mark.parametrize("change", ["zeros", "nothing"])
def test_it_does_not_change_with_its_file(change: str, tmp_path: Path) -> None:
    path = model_file(tmp_path)
    settings = FileSettings(device="cpu")
    with open_network(path, file=settings, threads=1, note=lambda _: None) as (network, _):
        engine = network.engine
        height, width = engine.preprocessing.image_size
        pixels = torch.randint(256, (2, len(engine.preprocessing.mean), height, width), dtype=torch.uint8)
        before = engine.logits(pixels).clone()
        with path.open("r+b") as stream:  # in place, as `cp` does
            if change == "nothing":
                stream.truncate(0)  # a page that was mapped from it would now end the process (SIGBUS)
            else:
                stream.write(b"\0" * path.stat().st_size)
        assert torch.equal(engine.logits(pixels), before)
