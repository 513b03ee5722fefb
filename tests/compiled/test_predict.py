from pathlib import Path

import pytest

from tests.data.pictures import photo
from tests.prediction.making import saved_model
from vitrail import Classifier

pytestmark = [
    pytest.mark.compiled,
    pytest.mark.filterwarnings("ignore"),  # torch's own compiler warns about torch
]


def test_a_compiled_classifier_answers_as_the_other_one(tmp_path: Path) -> None:
    model = saved_model(tmp_path)
    images = [photo(seed) for seed in range(5)]
    expected = Classifier.load(model, device="cpu").predict(images)
    for ours, theirs in zip(
        Classifier.load(model, device="cpu", batch=3, engine="compiled").predict(images), expected, strict=True
    ):
        assert ours.label == theirs.label
        assert ours.probability == pytest.approx(theirs.probability, abs=1e-5)
