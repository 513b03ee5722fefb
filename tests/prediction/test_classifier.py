import json
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from PIL import Image

import vitrail
from tests.data.corpus_images import exif, saved
from tests.data.pictures import encoded, photo
from tests.prediction.making import LABELS, by_hand, resized, saved_model
from tests.tiny import perturbed, resnet_config, vit_config
from vitrail.checkpoint.files import ZERO_HEAD
from vitrail.prediction.answers import most_probable
from vitrail.prediction.classifier import Classifier


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved_model(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def classifier(model: Path) -> vitrail.Classifier:
    return vitrail.Classifier.load(model, device="cpu")


def test_answers_are_the_softmax_of_the_model_worked_out_in_numpy(classifier) -> None:
    for seed in range(3):
        small = resized(photo(seed))  # of the model's own size, so that nothing is resized again
        expected = by_hand(classifier.engine.model, small)
        answer = classifier.predict(small, top=7)
        order = np.argsort(-expected, kind="stable")
        assert [label for label, _ in answer.top] == [LABELS[number] for number in order]
        np.testing.assert_allclose([value for _, value in answer.top], expected[order], atol=1e-6)
        assert (answer.label, answer.probability) == answer.top[0]
        assert sum(value for _, value in answer.top) == pytest.approx(1, abs=1e-5)


def test_an_image_of_another_size_is_resized_as_the_model_says(classifier) -> None:
    image = photo(4, 90, 70)
    ours, expected = classifier.predict(image, top=7), by_hand(classifier.engine.model, resized(image))
    np.testing.assert_allclose([value for _, value in ours.top], np.sort(expected)[::-1], atol=0.02)  # a level or so
    assert ours.label == LABELS[expected.argmax()]


def test_every_way_to_give_an_image_has_the_same_answer(classifier, tmp_path) -> None:
    image = photo(1, 50, 40)
    array, path = np.asarray(image), tmp_path / "x.png"
    image.save(path)
    ways = [
        str(path),
        path,
        path.read_bytes(),
        image,
        array,
        array.transpose(2, 0, 1),
        array[:, ::-1][:, ::-1],
        torch.from_numpy(array.copy()),
        torch.from_numpy(array.copy()).permute(2, 0, 1),
    ]
    alone = [classifier.predict(way) for way in ways]
    assert all(answer.top == alone[0].top for answer in alone)
    together = classifier.predict(ways)
    assert [answer.name for answer in together] == [str(path)] * 2 + [f"image {number}" for number in range(2, 9)]
    for answer in together:
        np.testing.assert_allclose([value for _, value in answer.top], [v for _, v in alone[0].top], atol=1e-6)


def test_a_list_is_answered_in_order_whatever_the_batch_and_the_workers(model) -> None:
    images = [photo(seed, 30 + seed, 24) for seed in range(11)]
    expected = vitrail.Classifier.load(model, device="cpu", batch=1, workers=1).predict(images)
    for batch, workers in ((3, 1), (4, 3), (32, 2)):
        answers = vitrail.Classifier.load(model, device="cpu", batch=batch, workers=workers).predict(tuple(images))
        assert [answer.label for answer in answers] == [answer.label for answer in expected]
        for ours, theirs in zip(answers, expected, strict=True):
            assert ours.probability == pytest.approx(theirs.probability, abs=1e-5)
    assert len({answer.label for answer in expected}) > 1
    assert vitrail.Classifier.load(model).predict([]) == []


def test_a_turned_photo_is_answered_upright(classifier) -> None:
    image = photo(2, 48, 36)
    turned = image.transpose(Image.Transpose.ROTATE_90)  # a camera on its side, which says so
    upright, aside = saved(image, "PNG"), saved(turned, "PNG", exif=exif(6))
    assert classifier.predict(aside).top == classifier.predict(upright).top
    assert classifier.predict(saved(turned, "PNG")).top != classifier.predict(upright).top


def test_other_kinds_of_colours_are_answered_as_the_colours_they_show(classifier) -> None:
    image = photo(3, 32, 24)
    grey = image.convert("L")
    as_colours = classifier.predict(Image.merge("RGB", [grey] * 3)).top
    assert classifier.predict(encoded(grey)).top == as_colours
    assert classifier.predict(np.asarray(grey)).top == as_colours
    assert classifier.predict(np.asarray(grey)[:, :, None]).top == as_colours
    sixteen = Image.fromarray(np.asarray(grey).astype(np.uint16) * 257)
    assert classifier.predict(encoded(sixteen)).top == as_colours
    clear = image.convert("RGBA")
    clear.putalpha(0)
    white = Image.new("RGB", image.size, "white")
    assert classifier.predict(encoded(clear)).top == classifier.predict(white).top
    few = image.quantize(16)
    assert classifier.predict(encoded(few, "GIF")).top == classifier.predict(few.convert("RGB")).top
    ink = image.convert("CMYK")
    assert classifier.predict(encoded(ink, "TIFF")).top == classifier.predict(ink.convert("RGB")).top


def test_a_model_of_one_channel_sees_the_luma_of_colours(tmp_path) -> None:
    grey = vitrail.Classifier.load(saved_model(tmp_path, channels=1), device="cpu")
    image = photo(5, 33, 21)
    assert grey.predict(image).top == grey.predict(image.convert("L")).top
    assert "how images become its input" in " ".join(grey.notes)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("image", "said"),
    [
        (np.zeros((9, 9, 4), np.uint8), "an array of 9x9x4 has neither a last nor a first axis of 1 or 3 channels"),
        (np.zeros((3, 9, 3), np.uint8), "does not show which axis has the channels"),
        (np.zeros((2, 9, 9, 3), np.uint8), "is a batch; give a list of images"),
        (np.zeros((9, 9, 3), np.float32), "must be of uint8"),
        (np.zeros((0, 9, 3), np.uint8), "not empty"),
        (torch.zeros(3, 9, 9), "must be of torch.uint8"),
        (torch.zeros(3, 9, 9, dtype=torch.bfloat16), "must be of torch.uint8"),
        (b"no image at all", "it is not a JPEG"),
        (b"", "the file is empty"),
        ("nowhere.jpg", "nowhere.jpg: there is no such file"),
        ("https://example.com/x.jpg", "nothing is fetched"),
        ("zero\0byte.jpg", "could not be read"),
        (".", "it is a folder"),
    ],
)
def test_what_is_no_image_is_refused_by_name(classifier, image, said) -> None:
    with pytest.raises(vitrail.ImageError, match=said):
        classifier.predict([np.zeros((4, 4), np.uint8), image])


@pytest.mark.usefixtures("unchecked")
def test_what_cannot_be_an_image_is_refused(classifier) -> None:
    with pytest.raises(vitrail.InputError, match="an image is a int, but must be a path"):
        classifier.predict(7)
    with pytest.raises(vitrail.ConfigError, match="at least 1"):
        classifier.predict(np.zeros((4, 4), np.uint8), top=0)


def test_a_missing_file_is_told_with_what_is_near(classifier, tmp_path) -> None:
    photo(0).save(tmp_path / "summer.jpg")
    with pytest.raises(vitrail.ImageError, match=r"Did you mean summer\.jpg"):
        classifier.predict(tmp_path / "sumer.jpg")


def test_labels_come_from_the_model_from_a_list_or_from_a_file(model, tmp_path) -> None:
    names = [f"kind {number}" for number in range(7)]
    (tmp_path / "names.txt").write_text("\n".join(names) + "\n")
    (tmp_path / "list.json").write_text(json.dumps(names))
    (tmp_path / "table.json").write_text(json.dumps({str(number): name for number, name in enumerate(names)}))
    for labels in (names, tmp_path / "names.txt", str(tmp_path / "list.json"), tmp_path / "table.json"):
        assert Classifier.load(model, labels=labels).labels == tuple(names)
    assert Classifier.load(model).labels == LABELS
    with pytest.raises(vitrail.ConfigError, match="2 labels were given for 7 classes"):
        Classifier.load(model, labels=["ant", "bee"])


def test_a_model_without_labels_answers_with_numbers_and_says_so(tmp_path, caplog) -> None:
    numbered = Classifier.load(saved_model(tmp_path, labels=None), device="cpu")
    assert numbered.predict(photo(0)).label in map(str, range(7))
    assert "carries no class names" in caplog.text


def test_a_head_of_zeros_is_told_and_every_class_is_as_probable(tmp_path, caplog) -> None:
    path = tmp_path / "fresh.safetensors"
    vitrail.save(vitrail.build(vit_config(), seed=0), path, labels=LABELS)
    fresh = Classifier.load(path, device="cpu")
    assert ZERO_HEAD in fresh.notes
    assert ZERO_HEAD in caplog.text
    assert fresh.predict(photo(0), top=3).top == tuple((label, float(f"{1 / 7:.7g}")) for label in LABELS[:3])


def test_another_image_size_and_other_kinds_of_models_work(model, tmp_path) -> None:
    larger = Classifier.load(model, image_size=(24, 32), device="cpu")
    assert larger.preprocessing.image_size == larger.engine.model.config.image_size == (24, 32)
    assert len(larger.predict(photo(0)).top) == 5
    half = perturbed(vit_config()).to(torch.bfloat16)
    for number, made in enumerate((half, perturbed(resnet_config()))):
        vitrail.save(made, tmp_path / f"{number}.safetensors", labels=LABELS)
        assert len(Classifier.load(tmp_path / f"{number}.safetensors", device="cpu").predict(photo(0), top=9).top) == 7


def test_a_model_without_classes_is_refused() -> None:
    with pytest.raises(vitrail.InputError, match="has no classes"):
        Classifier.of(perturbed(vit_config(num_classes=0)))
    with pytest.raises(vitrail.ConfigError, match="batch is 0"):
        Classifier.of(perturbed(vit_config()), batch=0)


def test_scores_that_are_not_finite_are_no_answer() -> None:
    spoilt = perturbed(vit_config())
    with torch.no_grad():
        spoilt.head.linear.bias[2] = float("nan")
    with pytest.raises(vitrail.ImageError, match="are not finite"):
        Classifier.of(spoilt).predict(photo(0))


@given(arrays(np.float64, (3, 6), elements=st.sampled_from([0.0, 0.1, 0.25, 0.3])), st.integers(1, 8))
def test_the_most_probable_come_first_and_the_first_of_equal_ones(scores, top) -> None:
    for row, answer in zip(scores, most_probable(torch.from_numpy(scores), top), strict=True):
        expected = sorted(range(6), key=lambda number: (-row[number], number))[:top]
        assert [number for number, _ in answer] == expected
        assert [value for _, value in answer] == [row[number] for number in expected]


def test_a_prediction_reads_as_a_line(classifier) -> None:
    text = str(classifier.predict(photo(0), top=2))
    assert text.startswith("image 0: ")
    assert text.count("%") == 2
