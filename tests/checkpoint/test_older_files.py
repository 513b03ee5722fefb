"""Model files that earlier code wrote still load, whole, as the same function.

`tests/golden/first_half` holds a Vision Transformer, a hybrid and a ResNet with random weights, written at commit
d416b18, and the logits that they had for the images below.
"""

from pathlib import Path

import numpy as np
import pytest
import torch

import vitrail
from vitrail.base.container import open_container

FOLDER = Path(__file__).parent.parent / "golden/first_half"


@pytest.mark.parametrize("kind", ["vit", "hybrid", "resnet"])
def test_a_file_of_the_first_half_is_the_same_model(kind: str) -> None:
    path = FOLDER / f"{kind}.safetensors"
    container = open_container(path)
    assert container.recorded_digest() == container.computed_digest()
    model = vitrail.load(path).eval()
    images = torch.rand(2, 3, 32, 32, generator=torch.Generator().manual_seed(0)) * 2 - 1
    with torch.no_grad():
        logits = model(images)
    np.testing.assert_allclose(logits.numpy(), np.load(FOLDER / "logits.npz")[kind], atol=1e-5)
    assert model.config.num_classes == 3


@pytest.mark.parametrize("kind", ["vit", "hybrid", "resnet"])
def test_writing_it_again_gives_the_same_weights(kind: str, tmp_path: Path) -> None:
    model = vitrail.load(FOLDER / f"{kind}.safetensors")
    vitrail.save(model, tmp_path / "again.safetensors")
    old, new = open_container(FOLDER / f"{kind}.safetensors"), open_container(tmp_path / "again.safetensors")
    assert old.places.keys() == new.places.keys()
    for name in old.places:
        assert torch.equal(old.tensor(name), new.tensor(name))
