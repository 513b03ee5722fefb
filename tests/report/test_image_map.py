"""The map on a page: every image once, nothing of a name is markup."""

import numpy as np
import torch

from tests.report.pages import read
from vitrail.report.image_map import Dot, DoubtfulImage, colour, doubtful_images, image_map


def pixels(value: int) -> torch.Tensor:
    return torch.full((3, 6, 4), value, dtype=torch.uint8)


def test_every_image_is_a_dot_with_its_picture_and_words() -> None:
    dots = [
        Dot(pixels=pixels(9), words='<b>ant</b>, "a".png', group=0, doubtful=True),
        Dot(pixels=pixels(99), words="bee, b.png", group=1),
        Dot(pixels=pixels(200), words="c.png", group=-1),
    ]
    page = image_map(np.array([[0.0, 0.0], [5.0, 1.0], [10.0, 2.0]]), dots, ("<b>ant</b>", "bee"), "Images.")
    assert page.count("<img ") == page.count("data:image/jpeg") == 3
    assert read(page).find(".//b") is None
    assert "left:0.00%;top:0.00%" in page
    assert "left:50.00%;top:50.00%" in page
    assert "left:100.00%;top:100.00%" in page
    assert page.count("doubtful") == 1
    assert len({colour(group, 5) for group in range(-1, 5)}) == 6


def test_one_place_for_all_is_drawn_too() -> None:
    page = image_map(np.zeros((2, 2)), [Dot(pixels=pixels(1), words="", group=-1)] * 2, (), "Images.")
    assert "nan" not in page


def test_many_classes_are_named_in_part() -> None:
    page = image_map(np.zeros((1, 2)), [Dot(pixels=pixels(1), words="", group=0)], list(map(str, range(30))), "Images.")
    assert "and 6 more" in page


def test_doubtful_labels_have_both_classes() -> None:
    image = DoubtfulImage(pixels=pixels(3), name="<i>x</i>.png", label="ant", other="bee")
    page = doubtful_images([image], 5, "backbone")
    assert read(page).find(".//i") is None
    assert "ant" in page
    assert "bee" in page
    assert "And 4 more." in page
