"""The page of a run, read back: curves, confusions, classes, mistakes, data, cost and settings of its story."""

import base64
import io
from pathlib import Path
from xml.etree.ElementTree import Element

import numpy as np
import pytest
from PIL import Image
from sklearn.metrics import precision_recall_fscore_support

from tests.report.pages import curve_points, figure, headings, pairs, part, read, tables, words
from tests.report.stories import CLOTHES, confusion_of, evaluation_of, mistakes_of, rows_of, story_of
from vitrail.base.errors import InputError
from vitrail.report.markup import text
from vitrail.report.report import render, write_report
from vitrail.report.section import section

SECTIONS = ["Curves", "Confusions", "Classes", "Most confident mistakes", "Data", "Cost", "Settings"]


@pytest.fixture(scope="module")
def page() -> Element:
    return read(render(story_of(steps=100)))


def test_the_page_has_every_part_in_this_order(page: Element) -> None:
    assert headings(page) == SECTIONS
    assert words(next(page.iter("h1"))) == words(next(page.iter("title"))) == "ViT-Ti/4 on clothes"
    assert len(list(page.iter("svg"))) == 4


def test_the_curves_are_those_of_the_rows(page: Element) -> None:
    rows = rows_of(100)
    for heading, role, key in (
        ("Loss", "first", "loss"),
        ("Accuracy", "first", "accuracy"),
        ("Learning rate", "third", "learning_rate"),
    ):
        expected = np.array([row[key] for row in rows if key in row])
        points = curve_points(figure(part(page, "Curves"), heading), role)
        np.testing.assert_array_equal(np.rint(points[:, 0]), np.arange(1, 101))
        np.testing.assert_allclose(points[:, 1], expected, atol=np.ptp(expected) / 100)


def test_the_matrix_has_every_count_in_its_place(page: Element) -> None:
    matrix = tables(part(page, "Confusions"))[0]
    assert matrix[0][1:] == list(CLOTHES)
    assert [row[0] for row in matrix[1:]] == list(CLOTHES)
    np.testing.assert_array_equal(np.array([row[1:] for row in matrix[1:]], dtype=int), confusion_of(10, 100))


def test_the_most_confused_pairs_are_the_largest_cells_off_the_diagonal(page: Element) -> None:
    confusion = confusion_of(10, 100)
    wrong = confusion * (1 - np.eye(10, dtype=int))
    rows = tables(part(page, "Confusions"))[1][1:]
    assert [int(images) for _, _, images, _ in rows] == sorted(wrong[wrong > 0].tolist(), reverse=True)[:10]
    for truth, answer, images, share in rows:
        count = wrong[CLOTHES.index(truth), CLOTHES.index(answer)]
        assert (int(images), share) == (count, f"{count:.1f}%")  # of 100 images


def test_every_class_has_scikit_learns_recall_precision_and_f1(page: Element) -> None:
    confusion = confusion_of(10, 100)
    truth, answers = (np.repeat(side.ravel(), confusion.ravel()) for side in np.indices((10, 10)))
    precision, recall, f1, support = precision_recall_fscore_support(truth, answers)
    rows = tables(part(page, "Classes"))[0][1:]
    assert [label for label, *_ in rows] == [CLOTHES[at] for at in np.argsort(f1, kind="stable")]
    for label, *cells in rows:
        at = CLOTHES.index(label)
        assert cells == [str(support[at]), *(f"{100 * share[at]:.1f}%" for share in (recall, precision, f1))]
    assert f"Balanced accuracy {100 * recall.mean():.1f}%" in words(part(page, "Classes"))
    assert f"mean F1 {100 * f1.mean():.1f}%" in words(part(page, "Classes"))


def test_the_mistakes_are_shown_with_their_pixels_the_surest_first(page: Element) -> None:
    expected = sorted(mistakes_of(CLOTHES, 18), key=lambda mistake: -mistake.confidence)
    figures = list(part(page, "Most confident mistakes").iter("figure"))
    assert len(figures) == len(expected)
    for element, mistake in zip(figures, expected, strict=True):
        answer, file = (words(node) for node in element.iter("p"))
        assert answer == f"{mistake.answer} {100 * mistake.confidence:.0f}%is {mistake.truth}"
        assert file == mistake.name
        kind, _, coded = next(element.iter("img")).get("src", "").partition(",")
        assert kind == "data:image/png;base64"
        picture = np.asarray(Image.open(io.BytesIO(base64.b64decode(coded))))
        np.testing.assert_array_equal(picture, mistake.pixels[0].numpy())


def test_only_the_surest_mistakes_are_shown() -> None:
    mistakes = mistakes_of(CLOTHES, 40)
    figures = part(read(render(story_of(steps=4, mistakes=mistakes))), "Most confident mistakes").iter("figure")
    surest = sorted(mistakes, key=lambda mistake: -mistake.confidence)[:24]
    assert [words(list(element.iter("p"))[1]) for element in figures] == [mistake.name for mistake in surest]


def test_cost_and_settings_are_those_of_the_story(page: Element) -> None:
    story = story_of()
    assert pairs(part(page, "Cost")).keys() == story.cost.keys()
    settings = pairs(part(page, "Settings"))
    assert (settings["seed"], settings["learning_rate"], settings["head.pool"]) == ("0", "0.001", "mean")
    assert words(next(part(page, "Settings").iter("summary"))) == "All 16 settings"


def test_a_matrix_too_large_for_numbers_is_a_picture_with_a_pixel_for_each_cell() -> None:
    labels = tuple(f"class {number}" for number in range(21))
    confusion = confusion_of(21, 50)
    evaluation = evaluation_of(labels, confusion)
    page = read(render(story_of(steps=4, evaluation=evaluation, mistakes=())))
    (image,) = part(page, "Confusions").iter("img")
    picture = np.asarray(Image.open(io.BytesIO(base64.b64decode(image.get("src", "").partition(",")[2]))))
    assert picture.shape == (21, 21, 4)
    np.testing.assert_array_equal(picture[..., 3], np.rint(255 * np.sqrt(confusion / 50)))
    assert "none to show" in words(part(page, "Most confident mistakes"))


def test_a_run_without_an_evaluation_says_so() -> None:
    page = read(render(story_of(steps=4, evaluation=None, mistakes=())))
    assert headings(page) == ["Curves", "Evaluation", "Data", "Cost", "Settings"]
    assert "No images were held out" in words(part(page, "Evaluation"))
    empty = read(render(story_of(steps=4, evaluation=evaluation_of(CLOTHES, confusion_of(10, 100) * 0))))
    assert "could be read" in words(part(empty, "Evaluation"))


def test_notes_come_first_and_further_sections_before_the_data() -> None:
    page = read(
        render(story_of(steps=4, notes=["a <note>"], sections=[section("Learning rate tried", text("0.1 & 0.2"))]))
    )
    assert [words(node) for node in page.iter("li")] == ["a <note>"]
    assert words(part(page, "Learning rate tried")).endswith("0.1 & 0.2")
    assert headings(page).index("Learning rate tried") == headings(page).index("Data") - 1


def test_nothing_is_fetched_and_names_are_never_markup() -> None:
    labels = ("<script>alert(1)</script>", '"quoted" & more')
    evaluation = evaluation_of(labels, np.array([[3, 1], [2, 4]]))
    raw = render(story_of(labels, steps=4, evaluation=evaluation, title="<b>run</b>", mistakes=mistakes_of(labels, 2)))
    page = read(raw)
    assert not list(page.iter("script"))
    assert words(next(page.iter("h1"))) == "<b>run</b>"
    addresses = [value for node in page.iter() for name, value in node.items() if name in ("src", "href")]
    assert all(address.startswith(("data:image/png;base64,", "#")) for address in addresses)
    (policy,) = (node.get("content", "") for node in page.iter("meta") if node.get("http-equiv"))
    assert policy.startswith("default-src 'none'")


def test_the_same_story_has_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one.html", "two.html"):
        write_report(story_of(steps=10), tmp_path / name)
    assert (tmp_path / "one.html").read_bytes() == (tmp_path / "two.html").read_bytes()
    assert (tmp_path / "one.html").read_text() == render(story_of(steps=10))


def test_counts_below_0_are_refused() -> None:
    with pytest.raises(InputError, match="has the count -1"):
        evaluation_of(("a", "b"), np.eye(2, dtype=int), confusion=-np.eye(2, dtype=int))
