import numpy as np
import pytest

from vitrail import Preprocessing
from vitrail.verbs.agreement import compare, sample_pixels


def test_agreement_is_the_share_of_equal_first_classes_and_difference_a_share_of_the_range() -> None:
    theirs = np.array([[0.0, 4.0], [3.0, 1.0], [2.0, 0.0], [0.0, 1.0]])
    ours = theirs + np.array([[0.0, 0.2], [0.0, 0.0], [-2.5, 0.0], [0.0, 0.0]])
    agreement, difference = compare(ours, theirs)
    assert agreement == 0.75
    assert difference == pytest.approx(2.5 / 4)


def test_images_for_comparing_come_from_the_test_split_of_any_data(tmp_path) -> None:
    how = Preprocessing(image_size=(8, 8), interpolation="nearest")
    assert sample_pixels(how, images=5).shape == (5, 3, 8, 8)
    shades = {"train": np.zeros((20, 8, 8), np.uint8), "test": np.full((3, 8, 8), 200, np.uint8)}
    arrays = {f"{name}_images": images for name, images in shades.items()}
    arrays |= {f"{name}_labels": np.zeros(len(images), np.int64) for name, images in shades.items()}
    np.savez(tmp_path / "data.npz", **arrays)
    pixels = sample_pixels(how, tmp_path / "data.npz")
    assert pixels.shape[0] == 3  # fewer than asked for, where there are fewer
    assert (pixels == 200).all()
