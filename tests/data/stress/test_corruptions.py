import colorsys
import io
import itertools
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from sklearn.datasets import load_sample_images

from tests.golden.corruption_scene import SEED, scene, shown
from vitrail.base.errors import ConfigError
from vitrail.data.stress import weather
from vitrail.data.stress.blur import disk
from vitrail.data.stress.corruptions import FUNCTIONS, corrupt
from vitrail.data.stress.draws import Draws
from vitrail.data.stress.published import NAMES, PUBLISHED, Published, published_for
from vitrail.data.stress.weather import fractal, frozen

GOLDEN = Path(__file__).parents[2] / "golden" / "corruptions.npz"
RISING = (
    *("gaussian-noise", "shot-noise", "impulse-noise", "defocus-blur", "motion-blur", "zoom-blur"),
    *("brightness", "contrast", "jpeg"),
)
"""Those whose published parameters grow in every way; pixels of another size may fit the edges of a scene better."""


def draws(name: str = "any", row: int = 0) -> Draws:
    return Draws(seed=0, stress=name, row=row)


def planes(side: int) -> np.ndarray:
    return np.asarray(scene(side), dtype=np.float64).transpose(2, 0, 1)


def pixels(side: int) -> torch.Tensor:
    return torch.from_numpy(np.array(scene(side))).permute(2, 0, 1)


@pytest.mark.parametrize("published", PUBLISHED, ids=lambda published: published.name)
@pytest.mark.parametrize("name", ["defocus-blur", "zoom-blur", "brightness", "contrast", "pixelate", "jpeg"])
def test_what_has_no_draws_is_what_the_published_program_makes(published: Published, name) -> None:
    golden = np.load(GOLDEN)
    np.testing.assert_array_equal(shown(np.asarray(scene(published.side))), golden[f"{published.side}/scene"])
    tolerance = 3.0 if name == "jpeg" else 0.01  # decoders of JPEG differ a little between releases
    for severity, arguments in enumerate(published.parameters[name]):
        ours = np.clip(FUNCTIONS[name](planes(published.side), draws(), *arguments), 0, 255)
        theirs = golden[f"{published.side}/{name}"][severity]
        np.testing.assert_allclose(shown(ours.transpose(1, 2, 0)), theirs, atol=tolerance)


class RecordedDraws:
    """In place of `Draws`: what the published program drew when it was recorded, in its order and layout."""

    def __init__(self, share: float) -> None:
        self.state = np.random.RandomState(SEED)  # old, so that its numbers never change
        self.share = share

    def uniform(self, name: str, *shape: int) -> np.ndarray:
        if name == "noise":  # the program draws which values are broken, then which of these are white
            broken, white = (self.state.random_sample((*shape[1:], 3)).transpose(2, 0, 1) for _ in range(2))
            return np.where(broken > self.share, 1.0, np.where(white <= 0.5, 0.75, 0.25) * self.share)
        values = self.state.random_sample(shape)
        return values[::-1] if name == "field" else values  # it draws moves to the right before those down

    def normal(self, _: str, *shape: int) -> np.ndarray:
        return self.state.standard_normal((*shape[1:], shape[0])).transpose(2, 0, 1)

    def whole(self, _: str, low: int, high: int, *shape: int) -> np.ndarray:
        return self.state.randint(low, high, shape[::-1]).T[::-1]  # right before down, for each pixel

    def poisson(self, _: str, levels: np.ndarray, photons: float) -> np.ndarray:
        return self.state.poisson(levels.transpose(1, 2, 0) / 255.0 * photons).transpose(2, 0, 1)


DRAWN = {
    **dict.fromkeys(("gaussian-noise", "shot-noise", "impulse-noise", "fog", "elastic"), 0.01),
    "glass-blur": 1.01,
    "motion-blur": 1.01,
    "snow": 2.01,
}
"""How many levels from the recorded outputs: glass and ImageMagick cut to whole levels on the way, and snow is two."""


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("published", PUBLISHED, ids=lambda published: published.name)
@pytest.mark.parametrize("name", DRAWN)
def test_with_the_draws_of_the_published_program_it_is_what_that_makes(published: Published, name) -> None:
    golden = np.load(GOLDEN)[f"{published.side}/{name}"]
    for severity, arguments in enumerate(published.parameters[name]):
        ours = np.clip(FUNCTIONS[name](planes(published.side), RecordedDraws(arguments[0]), *arguments), 0, 255)
        np.testing.assert_allclose(shown(ours.transpose(1, 2, 0)), golden[severity], atol=DRAWN[name])


@pytest.mark.parametrize("published", PUBLISHED, ids=lambda published: published.name)
def test_frost_is_mixed_in_as_published_whatever_it_is(published: Published, monkeypatch) -> None:
    """Photos of frost were replaced by white when this was recorded."""
    monkeypatch.setattr(weather, "FROST_COLOUR", (1.0, 1.0, 1.0))
    monkeypatch.setattr(weather, "frozen", lambda _, height, width: np.ones((height, width)))
    for severity, arguments in enumerate(published.parameters["frost"]):
        ours = np.clip(FUNCTIONS["frost"](planes(published.side), draws(), *arguments), 0, 255)
        theirs = np.load(GOLDEN)[f"{published.side}/frost"][severity]
        np.testing.assert_allclose(shown(ours.transpose(1, 2, 0)), theirs, atol=0.01)


@pytest.mark.parametrize("side", [224, 64, 32])
@pytest.mark.parametrize("name", RISING)
def test_a_higher_severity_changes_more(side, name) -> None:
    image = pixels(side)
    distances = [
        float((corrupt(image, name, severity, draws(name)).float() - image.float()).square().mean())
        for severity in range(1, 6)
    ]
    assert distances[0] > 0
    assert all(later >= 0.98 * earlier for earlier, later in itertools.pairwise(distances)), distances
    assert distances[-1] > 1.3 * distances[0]


@pytest.mark.parametrize("side", [224, 64, 32])
def test_a_higher_severity_changes_photographs_more(side) -> None:
    """Two photographs that come with scikit-learn; on them the published parameters rise without exception."""
    for row, photograph in enumerate(load_sample_images().images):
        square = Image.fromarray(photograph[:, : photograph.shape[0]])
        image = torch.from_numpy(np.array(square.resize((side, side), Image.Resampling.BICUBIC))).permute(2, 0, 1)
        for name in RISING:
            changed = [corrupt(image, name, severity, draws(name, row)) for severity in range(1, 6)]
            distances = [float((pixels.float() - image.float()).square().mean()) for pixels in changed]
            assert distances[0] > 0
            assert distances == sorted(distances), (name, distances)
            assert distances[-1] > 1.5 * distances[0], (name, distances)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("shape", [(3, 24, 31), (1, 28, 28), (4, 40, 33)])
def test_every_corruption_takes_any_shape_and_depends_on_the_image_alone(name, shape) -> None:
    image = torch.from_numpy(np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8))
    first = corrupt(image, name, 5, draws(name, row=4))
    assert first.shape == image.shape
    assert first.dtype == torch.uint8
    assert not torch.equal(first, image)
    assert torch.equal(first, corrupt(image, name, 5, draws(name, row=4)))
    black = torch.zeros(shape, dtype=torch.uint8)
    assert corrupt(black, name, 3, draws(name)).shape == black.shape


@pytest.mark.parametrize("name", ["gaussian-noise", "snow", "glass-blur", "fog", "elastic", "frost", "motion-blur"])
def test_another_picture_or_seed_gets_other_draws(name) -> None:
    image = pixels(32)
    one = corrupt(image, name, 5, draws(name))
    assert not torch.equal(one, corrupt(image, name, 5, draws(name, row=1)))
    assert not torch.equal(one, corrupt(image, name, 5, Draws(seed=1, stress=name, row=0)))


def test_noise_has_the_variance_that_it_should() -> None:
    grey = np.full((3, 160, 160), 128.0)
    noisy = FUNCTIONS["gaussian-noise"](grey, draws(), 0.08)
    assert noisy.mean() == pytest.approx(128, abs=0.3)
    assert noisy.std() == pytest.approx(0.08 * 255, rel=0.02)
    counted = FUNCTIONS["shot-noise"](grey, draws(), 25)
    assert counted.mean() == pytest.approx(128, abs=0.5)
    assert counted.var() == pytest.approx(128 * 255 / 25, rel=0.03)
    broken = FUNCTIONS["impulse-noise"](grey, draws(), 0.17)
    assert (broken == 0).mean() == pytest.approx(0.085, abs=0.004)
    assert (broken == 255).mean() == pytest.approx(0.085, abs=0.004)
    assert set(np.unique(broken)) == {0.0, 128.0, 255.0}


@pytest.mark.parametrize(("radius", "softness"), [(0.3, 0.4), (3, 0.1), (8, 0.5), (10, 0.5), (2.5, 0.01)])
def test_a_disk_sums_to_one_and_is_symmetric(radius, softness) -> None:
    kernel = disk(radius, softness)
    assert kernel.sum() == pytest.approx(1, abs=1e-9 if radius < 8 else 0.02)  # mirrored edges, as published
    np.testing.assert_allclose(kernel, kernel.T)
    np.testing.assert_allclose(kernel, kernel[::-1])


def test_brightness_raises_the_value_of_hsv() -> None:
    colours = np.random.default_rng(0).integers(0, 256, (3, 6, 7)).astype(float)
    colours[:, 0, 0] = 0
    brighter = FUNCTIONS["brightness"](colours, draws(), 0.3)
    for row in range(6):
        for column in range(7):
            hue, saturation, value = colorsys.rgb_to_hsv(*(colours[:, row, column] / 255))
            wanted = colorsys.hsv_to_rgb(hue, saturation, min(value + 0.3, 1))
            np.testing.assert_allclose(brighter[:, row, column] / 255, wanted, atol=1e-9)


def test_jpeg_and_pixelate_are_pillows() -> None:
    image, file = scene(64), io.BytesIO()
    image.save(file, "JPEG", quality=50)
    jpeg = torch.from_numpy(np.array(Image.open(file))).permute(2, 0, 1)
    assert torch.equal(corrupt(pixels(64), "jpeg", 3, draws()), jpeg)
    coarse = image.resize((32, 32), Image.Resampling.BOX).resize((64, 64), Image.Resampling.BOX)
    assert torch.equal(corrupt(pixels(64), "pixelate", 5, draws()), torch.from_numpy(np.array(coarse)).permute(2, 0, 1))


def test_fog_and_frost_are_lively_and_within_their_range() -> None:
    for drawn in (fractal(draws(), 50, 2.0), frozen(draws(), 60, 90)):
        assert 0 <= drawn.min() < drawn.max() <= 1
        assert drawn.std() > 0.05
    assert fractal(draws(), 50, 2.0).shape == (64, 64)
    assert 0.35 < np.mean([frozen(draws(row=row), 64, 64).mean() for row in range(8)]) < 0.75


def test_glass_moves_pixels_no_further_than_it_may() -> None:
    """Without smoothing, every pixel has the colour of one near it; the furthest path has a step for each round."""
    ramp = np.tile(np.arange(40.0), (1, 40, 1))
    moved = FUNCTIONS["glass-blur"](ramp, draws(), 0.05, 1, 2)
    assert not np.array_equal(moved, ramp)
    inner = np.abs(moved - ramp)[:, 5:-5, 5:-5]
    assert 0 < inner.mean() < 2
    assert set(np.unique(moved)) <= set(range(40))


def test_the_nearest_published_size_is_taken() -> None:
    sizes = {16: "CIFAR-10-C", 32: "CIFAR-10-C", 44: "CIFAR-10-C", 48: "Tiny-ImageNet-C", 96: "Tiny-ImageNet-C"}
    for side, name in (sizes | {128: "ImageNet-C", 224: "ImageNet-C", 518: "ImageNet-C"}).items():
        assert published_for((side, side + 7)).name == name


@pytest.mark.usefixtures("unchecked")
def test_what_does_not_exist_is_refused() -> None:
    with pytest.raises(ConfigError, match="severity is 6, but must be a whole number of at most 5"):
        corrupt(pixels(32), "fog", 6, draws())
    with pytest.raises(ConfigError, match="severity is 0, but must be a whole number of at least 1"):
        corrupt(pixels(32), "fog", 0, draws())
    with pytest.raises(ConfigError, match=r"there is no corruption 'frog'; .* Did you mean fog or frost"):
        corrupt(pixels(32), "frog", 1, draws())  # type: ignore[arg-type]
