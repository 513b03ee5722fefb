import pytest
import torch

from vitrail import ConfigError, Preprocessing
from vitrail.data.transforms import preprocess
from vitrail.runtime.fitting import check_expressible, fit
from vitrail.runtime.graph_engine import on_canvas

WAYS = [("square", 1.0, (20, 20)), ("crop", 0.875, (20, 20)), ("crop", 0.9, (16, 24)), ("square", 0.8, (24, 16))]
SIZES = [(20, 20), (45, 60), (120, 160), (7, 90), (1, 1), (97, 33)]
FILTERS = [
    *(("nearest", False), ("bilinear", False), ("bilinear", True)),
    *(("bicubic", False), ("bicubic", True), ("lanczos", False)),
]


@pytest.mark.parametrize(("interpolation", "antialias"), FILTERS)
@pytest.mark.parametrize(("geometry", "fraction", "size"), WAYS)
def test_a_graph_makes_the_pixels_of_preprocessing(geometry, fraction, size, interpolation, antialias) -> None:
    how = Preprocessing(
        image_size=size,
        geometry=geometry,
        crop_fraction=fraction,
        interpolation=interpolation,
        antialias=antialias,
    )
    noise = torch.Generator().manual_seed(0)
    for height, width in SIZES:
        image = torch.randint(0, 256, (height, width, 3), dtype=torch.uint8, generator=noise).permute(2, 0, 1)
        ours, expected = fit(image[None].float(), how)[0], preprocess(image, how).float()
        assert (ours - expected).abs().max() <= 1  # a level of 255: torch's own passes are in fixed point


@pytest.mark.parametrize(("geometry", "fraction", "size"), WAYS)
def test_an_image_on_its_canvas_comes_out_of_the_graph_as_it_is(geometry, fraction, size) -> None:
    for interpolation, antialias in FILTERS:
        how = Preprocessing(
            image_size=size,
            geometry=geometry,
            crop_fraction=fraction,
            interpolation=interpolation,
            antialias=antialias,
        )
        pixels = torch.randint(0, 256, (2, *size, 3), dtype=torch.uint8)
        canvas = torch.from_numpy(on_canvas(pixels.numpy(), how)).permute(0, 3, 1, 2).float()
        assert fit(canvas, how).permute(0, 2, 3, 1).to(torch.uint8).equal(pixels)


def test_lanczos_with_antialias_is_refused_by_name() -> None:
    with pytest.raises(ConfigError, match="'lanczos' with antialias cannot be part of a graph"):
        check_expressible(Preprocessing(interpolation="lanczos", antialias=True))


def test_ties_of_sizes_are_rounded_to_even_exactly() -> None:
    how = Preprocessing(image_size=(12, 16), geometry="crop", crop_fraction=0.875)
    assert how.canvas == (13, 18)
    assert how.resized(120, 160) == (14, 18)  # 13.5
    assert how.resized(100, 144) == (13, 19)  # 18.72
