"""The accuracy on the page of a run, under the name of its split."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binomtest

from tests.report.stories import CLOTHES, confusion_of, evaluation_of, story_of
from tests.report.test_evaluation_page import _read
from vitrail.base.errors import InputError
from vitrail.base.scores import scores
from vitrail.report.report import render


def test_the_page_shows_everything_and_fetches_nothing() -> None:
    reader = _read(render(story_of()))
    headings = ["Curves", "Confusions", "Classes", "Most confident mistakes", "Data", "Cost", "Settings"]
    assert reader.headings == headings
    assert all(address.startswith("data:image/png") for address in reader.addresses if not address.startswith("#"))


def test_the_accuracy_has_its_interval_even_without_a_matrix() -> None:
    labels = tuple(f"class {number}" for number in range(2001))
    counts = np.zeros((2001, 2001), np.int64)
    counts[np.arange(1500), np.arange(1500)] = 1
    counts[np.arange(1500, 2001), 0] = 1
    page = render(story_of(labels, steps=20, evaluation=evaluation_of(labels, counts, confusion=None, top5=0.875)))
    interval = binomtest(1500, 2001).proportion_ci(method="wilson")
    for words in (
        "test accuracy",
        f"{1500 / 2001:.2%}",
        f"95% interval {interval.low:.1%} to {interval.high:.1%}; 2,001 images",
        "87.50%",
        "With 2,001 classes the matrix",
        "The worst 50 of 2,001 classes.",
    ):
        assert words in page, words
    for absent in ("so far", "There is no final evaluation", "yet", "Most confused"):
        assert absent not in page, absent


@pytest.mark.parametrize(("split", "label"), [("test", "test"), ("val", "validation"), ("dev", "dev")])
def test_the_curves_name_the_split_that_was_held_out(split: str, label: str) -> None:
    evaluation = evaluation_of(CLOTHES, confusion_of(10, 100), split=split)
    curves = render(story_of(steps=200, evaluation=evaluation)).partition("<h2>Curves</h2>")[2].partition("<h2>")[0]
    assert curves.count(f"{label} <b>") == 2  # loss and accuracy
    assert [word for word in ("test", "validation", "dev") if f"{word} <b>" in curves] == [label]
    assert "200 in all" in curves


def test_without_held_out_images_the_page_says_so() -> None:
    rows = [row for row in story_of().metrics if "loss" in row]
    page = render(story_of(metrics=rows, evaluation=None, mistakes=()))
    assert "No images were held out." in page
    assert "accuracy so far" not in page
    nothing = evaluation_of(CLOTHES, np.zeros((10, 10), np.int64))
    assert "None of the images of test could be read." in render(story_of(evaluation=nothing, mistakes=()))


def test_scores_and_counts_of_other_classes_are_refused() -> None:
    evaluation = evaluation_of(CLOTHES, confusion_of(10, 100))
    with pytest.raises(InputError, match="scores of 3 classes and names of 10"):
        replace(evaluation, scores=scores(np.eye(3, dtype=np.int64)))
    with pytest.raises(InputError, match="the confusion matrix is 3x3, but there are 10 classes"):
        replace(evaluation, confusion=np.eye(3, dtype=np.int64))
