import numpy as np
import pytest
import torch

from vitrail.report.overlay import GAP, TITLE, overlay, picture_of, shown_size, side_by_side

GREY = np.full((20, 30, 3), 100, dtype=np.uint8)


@pytest.mark.parametrize(
    ("size", "shown"),
    [((28, 28), (224, 224)), ((100, 50), (200, 100)), ((300, 400), (300, 400)), ((4000, 1000), (512, 128))],
)
def test_images_are_shown_with_their_own_proportions(size, shown) -> None:
    assert shown_size(*size) == shown
    assert picture_of(torch.zeros(3, *size, dtype=torch.uint8)).shape == (*shown, 3)


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_an_image_of_any_channels_is_shown(channels) -> None:
    pixels = torch.randint(0, 256, (channels, 240, 230), dtype=torch.uint8)
    picture = picture_of(pixels)
    wanted = pixels[:3] if channels >= 3 else pixels[:1].expand(3, -1, -1)
    assert np.array_equal(picture, wanted.permute(1, 2, 0).numpy())


def test_the_strongest_place_is_the_brightest_and_what_was_not_seen_is_dark() -> None:
    heat = np.zeros((20, 30))
    heat[4, 7] = 2.0
    heat[:, 25:] = np.nan
    picture = overlay(GREY, heat, signed=False).astype(int).sum(axis=2)
    assert np.unravel_index(picture.argmax(), picture.shape) == (4, 7)
    assert (picture[:, 25:] < picture[:, :25].min()).all()


def test_signs_have_colours_of_their_own() -> None:
    heat = np.zeros((20, 30))
    heat[2, 2], heat[9, 9] = 1.0, -1.0
    picture = overlay(GREY, heat, signed=True).astype(int)
    assert picture[2, 2, 0] > picture[2, 2, 2] + 50
    assert picture[9, 9, 2] > picture[9, 9, 0] + 50
    assert len(np.unique(picture[15:].reshape(-1, 3), axis=0)) == 1


@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.parametrize("value", [0.0, 3.0, np.nan])
def test_an_even_map_colours_nothing_and_warns_of_nothing(signed, value) -> None:
    picture = overlay(GREY, np.full((20, 30), value), signed=signed)
    assert len(np.unique(picture.reshape(-1, 3), axis=0)) == 1


def test_pictures_stand_side_by_side_below_titles_that_fit() -> None:
    sheet = side_by_side([GREY, GREY], ["ant", "a very long name of a class that does not fit " * 3])
    assert sheet.size == (2 * 30 + GAP, 20 + TITLE)
    assert np.array_equal(np.asarray(sheet)[TITLE:, :30], GREY)
