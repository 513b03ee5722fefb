"""A survey from Python: what is found, what is written, and what is refused before the work."""

import csv
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import vitrail
from tests.base.test_table import read
from tests.data.pictures import encoded, photo
from vitrail import ConfigError, InputError
from vitrail.data.budget import Budget

pytestmark = pytest.mark.usefixtures("unchecked")


@pytest.fixture
def photos(workplace) -> Path:
    """The photos with one broken file, and a copy in both training and test."""
    folder = workplace / "photos"
    for name in ("train", "test"):
        (folder / name / "ant").mkdir(parents=True)
        (folder / name / "ant" / f"{name}.png").write_bytes(encoded(photo(99, 30, 20)))
    for name in ("ant", "bee"):
        for file in (folder / name).iterdir():
            (folder / "train" / name).mkdir(exist_ok=True)
            file.rename(folder / "train" / name / file.name)
        (folder / name).rmdir()
    (folder / "train" / "bee" / "<i>broken.png").write_bytes(encoded(photo(5, 30, 20))[:200])
    return folder


def test_what_is_wrong_is_found(photos) -> None:
    survey = vitrail.survey(photos)
    assert (survey.images, survey.classes) == (11, ("ant", "bee"))
    assert [Path(name).name for name, _ in survey.broken] == ["<i>broken.png"]
    assert [(Path(image).name, Path(other).name) for image, other in survey.leaks] == [("train.png", "test.png")]
    for shown in (repr(survey), read(survey._repr_html_()).text):
        assert "<i>broken.png" in shown
        assert "11 images, 2 classes" in shown
    assert "i" not in read(survey._repr_html_()).tags
    with pytest.raises(InputError, match=r"1 of 11 images are broken or missing.*`skip_broken` to 10%"):
        survey.check_broken(Budget.parse("0"))
    survey.check_broken(Budget.parse("1"))


def test_clean_and_sheet_are_written_with_the_survey_or_after_it(photos, workplace) -> None:
    survey = vitrail.survey(photos, clean="photos/a.csv", sheet=workplace / "a.html", image_size=16)
    assert (survey.clean_list.images, len(survey.clean_list.left_out)) == (9, 2)
    assert survey.sheet_file == workplace / "a.html"
    assert "a.csv lists 9 images; 2 were left out." in repr(survey)
    assert survey.clean("photos/b.csv").images == 9
    assert (photos / "b.csv").read_text() == (photos / "a.csv").read_text()
    with (photos / "b.csv").open() as file:
        assert sum(row["label"] == "bee" for row in csv.DictReader(file)) == 4
    assert survey.sheet("b.html", image_size=16).read_bytes() == (workplace / "a.html").read_bytes()
    assert vitrail.survey("photos/b.csv").broken == ()
    elsewhere = survey.clean(workplace / "c.csv")
    assert elsewhere.root is None
    (workplace / "lists").mkdir()
    assert survey.clean(workplace / "lists" / "c.csv").root == str(photos)


def test_a_data_set_that_is_open_is_surveyed(photos) -> None:
    dataset = vitrail.data.open(photos, split="test")
    assert vitrail.survey(dataset).images == 1


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"near": 12}, "near is 12, but must be a number of bits from 0 to 11"),
        ({"near": "7"}, "near is '7'"),
        ({"augment": "mild"}, "augment is 'mild', but must be one of paper, strong, none"),
        ({"image_size": 9999}, "image_size is 9999x9999, but at most 4096"),
        ({"sheet": "x.jpg"}, "ends in .html"),
        ({"clean": "x.txt"}, "ends in .csv"),
        ({"val_fraction": 2.0}, "val_fraction is 2.0"),
    ],
)
def test_settings_that_cannot_be_are_named(settings, message) -> None:
    with pytest.raises(ConfigError, match=message):
        vitrail.survey("sample", **settings)


def test_images_that_are_not_files_are_refused_before_they_are_read(tmp_path) -> None:
    images = np.random.default_rng(0).integers(0, 256, (30, 8, 8), dtype=np.uint8)
    np.savez(tmp_path / "x.npz", x_train=images, y_train=np.arange(30) % 3)

    def never(steps, *, total, title):  # noqa: ARG001 - as the protocol has it
        raise AssertionError("an image was read")

    with pytest.raises(InputError, match="`clean` lists image files"):
        vitrail.survey(tmp_path / "x.npz", clean=tmp_path / "x.csv", progress=never)
    with pytest.raises(InputError, match="`clean` lists image files"):
        vitrail.survey(tmp_path / "x.npz").clean(tmp_path / "x.csv")


@pytest.fixture
def coloured(workplace) -> Path:
    """Dark and light images, of which one is in the wrong folder."""
    chance = np.random.default_rng(0)
    for number in range(48):
        light = number % 2
        label = "light" if light and number != 7 else "dark"
        pixels = (40 + 150 * light + chance.integers(0, 40, (24, 24, 3))).astype(np.uint8)
        file = workplace / "coloured" / label / f"{number}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(file)
    return workplace / "coloured"


def test_features_show_a_label_in_doubt_and_a_map(coloured, workplace) -> None:
    model = vitrail.create("Ti/8", num_classes=0, image_size=24, depth=1, seed=0)
    survey = vitrail.survey(coloured, features=model, sheet=workplace / "a.html", image_size=16)
    report = survey.to_dict()["features"]
    assert [Path(entry["image"]["name"]).name for entry in report["doubts"]] == ["7.png"]
    assert (report["doubts"][0]["image"]["class"], report["doubts"][0]["other"]) == ("dark", "light")
    assert report["agreement"] == pytest.approx(47 / 48, abs=1e-4)
    assert "dark, but its features are those of light" in repr(survey)
    page = (workplace / "a.html").read_text()
    assert "A map of the images" in page
    assert "Labels in doubt" in page
    assert page.count("tabindex") == 48


def test_features_judge_no_class_of_few_images(photos) -> None:
    model = vitrail.create("Ti/8", num_classes=0, image_size=24, depth=1, seed=0)
    survey = vitrail.survey(photos, features=model)
    assert survey.to_dict()["features"]["agreement"] is None
    assert "a class has fewer than ten images" in repr(survey)
    assert vitrail.survey(photos).to_dict()["features"] is None
