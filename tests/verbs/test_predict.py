import csv
from pathlib import Path

import numpy as np
import pytest
import torch

import vitrail
from tests.checkpoint.making import recorded
from tests.data.pictures import photo
from tests.prediction.making import LABELS, by_hand, saved_model, saved_photos
from tests.runtime.test_engine import Means
from vitrail.base.errors import VitrailError
from vitrail.prediction.prediction import Prediction
from vitrail.verbs.predict import predict


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return saved_model(tmp_path)


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    return saved_photos(tmp_path / "photos", [f"{number}.png" for number in range(5)])


def test_one_image_has_the_probabilities_worked_out_in_numpy(model: Path) -> None:
    image = photo(3, 16, 12)
    answer = predict(model, image, top=7, device="cpu")
    expected = by_hand(vitrail.load(model), np.asarray(image))
    assert isinstance(answer, Prediction)
    assert {name: pytest.approx(share, abs=1e-5) for name, share in answer.top} == dict(
        zip(LABELS, expected, strict=True)
    )


def test_a_file_a_model_a_classifier_answer_the_same(model: Path, photos: Path) -> None:
    path = photos / "0.png"
    wanted = predict(model, path)
    loaded = vitrail.load(model).train()
    assert predict(loaded, path) == predict(vitrail.Classifier.load(model), path) == wanted
    assert loaded.training
    assert predict(model, (path,)) == [wanted]
    assert [answer.label for answer in predict(model, [path, path])] == [wanted.label] * 2


def test_an_engine_of_another_kind_predicts(photos: Path) -> None:
    (first, *_) = predict(Means(), photos, labels=("ant", "bee", "wasp"), top=1)
    assert first.label in ("ant", "bee", "wasp")


def test_a_folder_and_a_pattern_give_a_list_and_note_what_is_broken(model: Path, photos: Path) -> None:
    wanted = predict(model, [str(path) for path in sorted(photos.iterdir())])
    (photos / "broken.png").write_bytes(b"no image")
    heard: list[str] = []
    assert predict(model, photos, note=heard.append) == wanted
    assert len(heard) == 1
    assert "broken.png: it is not a JPEG" in heard[0]
    assert predict(model, str(photos / "[0-4].png")) == wanted


def test_a_folder_goes_into_a_file_as_by_the_command(model: Path, photos: Path, tmp_path: Path) -> None:
    outcome = predict(model, photos, out=tmp_path / "x.csv", top=2)
    assert (outcome.images, outcome.failed) == (5, 0)
    with (tmp_path / "x.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["label_2"] for row in rows] == [answer.top[1][0] for answer in predict(model, photos)]
    assert repr(outcome)


def test_a_prediction_and_a_classifier_are_tables_in_a_notebook(model: Path) -> None:
    answer = Prediction(name="<a>.jpg", top=(("<script>", 0.75), ("bee", 0.25)))
    shown = answer._repr_html_()
    assert "&lt;script&gt;" in shown
    assert "<script>" not in shown
    assert "75.0%" in shown
    described = vitrail.Classifier.load(model, device="cpu")._repr_html_()
    for fact in ("7: ant, bee", "12x16", "torch.float32 on cpu"):
        assert fact in described


@pytest.mark.parametrize(
    ("images", "settings", "sentence"),
    [
        ("nowhere.jpg", {}, "nowhere.jpg: there is no such file"),
        ("nowhere.jpg", {"top": 0}, "top is 0"),
        (b"bytes", {"out": "x.csv"}, "images must be paths"),
        ("nowhere.jpg", {"out": "x.txt"}, "ends in .csv or .jsonl"),
        ("nowhere.jpg", {"batch": 0}, "batch is 0"),
        ("nowhere.jpg", {"threads": 0}, "threads is 0"),
    ],
)
def test_what_cannot_be_is_one_sentence(images, settings, sentence: str, model: Path) -> None:
    with pytest.raises(vitrail.VitrailError) as refused:
        predict(model, images, **settings)
    assert sentence in str(refused.value)
    assert "--" not in str(refused.value)


def test_settings_of_a_classifier_are_its_own(model: Path, photos: Path) -> None:
    classifier = vitrail.Classifier.load(model, device="cpu")
    with pytest.raises(vitrail.ConfigError, match="a classifier's own"):
        predict(classifier, photos, batch=3)
    with pytest.raises(vitrail.ConfigError, match="image_size is for models"):
        predict(classifier, photos, image_size=16)


def test_what_a_file_of_another_library_does_not_tell_is_given_by_the_caller(tmp_path: Path) -> None:
    weights, _, _ = recorded("timm_token")
    torch.save(weights, tmp_path / "weights.pth")
    path, answers = tmp_path / "weights.pth", {"num_heads": 3, "architecture": "timm"}
    expected = predict(vitrail.load(path, pickle=True, image_size=(16, 24), **answers), photo(3, 16, 24))
    assert predict(path, photo(3, 16, 24), pickle=True, image_size=(16, 24), **answers) == expected
    with pytest.raises(VitrailError, match="num_heads"):
        predict(path, photo(3, 16, 24), pickle=True, image_size=(16, 24), architecture="timm")
