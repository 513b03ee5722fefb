import pytest
import torch
import torch.nn.functional as F

from tests.tiny import images_for, perturbed, resnet_config, vit_config
from vitrail import Preprocessing
from vitrail.analysis.attacks import pgd, square_bounds
from vitrail.data.transforms import normalise, standardise

PIXELS = Preprocessing(image_size=(12, 16), mean=(0.4, 0.5, 0.6), std=(0.2, 0.3, 0.25))


def setting(config=None):
    model = perturbed(config or vit_config(), by=0.3)
    generator = torch.Generator().manual_seed(0)
    size = model.config.image_size
    pixels = torch.randint(0, 256, (5, 3, *size), generator=generator).float()
    classes = torch.tensor([0, 1, 2, 3, 4])
    start = 2 * torch.rand(pixels.shape, generator=generator) - 1
    return lambda values: model(standardise(values, PIXELS)), pixels, classes, start


def bound(level: float) -> torch.Tensor:
    return torch.full((5, 1, 1, 1), level)


def test_standardised_fractions_are_normalised_pixels() -> None:
    pixels = torch.randint(0, 256, (3, 3, 8, 8), dtype=torch.uint8)
    assert torch.equal(standardise(pixels.float(), PIXELS), normalise(pixels, PIXELS))


@pytest.mark.parametrize("config", [vit_config(), resnet_config(image_size=(12, 16))])
@pytest.mark.parametrize("steps", [1, 3])
def test_the_steps_are_those_of_a_plain_version(config, steps) -> None:
    scores, pixels, classes, start = setting(config)
    point = (pixels + 4 * start).clamp(0, 255)
    tried = [point]
    for _ in range(steps):
        leaf = point.clone().requires_grad_()
        F.cross_entropy(scores(leaf), classes, reduction="sum").backward()
        moved = point + 2.5 / steps * 4 * torch.sign(leaf.grad)
        point = torch.maximum(torch.minimum(moved, pixels + 4), pixels - 4).clamp(0, 255)
        tried.append(point)
    with torch.no_grad():
        losses = torch.stack([F.cross_entropy(scores(values), classes, reduction="none") for values in tried])
    wanted = torch.stack(tried)[losses.argmax(dim=0), torch.arange(5)]
    fooling = pgd(scores, pixels, classes, bounds=bound(4.0), start=start, steps=steps)
    # A gradient that is 0 but for rounding may have either sign.
    assert ((fooling - wanted).abs() > 1e-4).float().mean() < 0.001


@pytest.mark.parametrize("budget", [0.5, 1.0, 8.0])
def test_an_attack_stays_inside_its_budget_and_raises_the_loss(budget) -> None:
    scores, pixels, classes, start = setting()
    fooling = pgd(scores, pixels, classes, bounds=bound(budget), start=start, steps=5)
    assert (fooling - pixels).abs().max() <= budget + 1e-4
    assert 0 <= fooling.min() <= fooling.max() <= 255
    with torch.no_grad():
        before = F.cross_entropy(scores((pixels + budget * start).clamp(0, 255)), classes, reduction="none")
        after = F.cross_entropy(scores(fooling), classes, reduction="none")
    assert (after >= before - 1e-5).all()
    assert (after > before).any()


def test_a_larger_budget_does_more() -> None:
    scores, pixels, classes, start = setting()
    losses = []
    for budget in (0.0, 1.0, 4.0, 16.0):
        fooling = pgd(scores, pixels, classes, bounds=bound(budget), start=start, steps=10)
        with torch.no_grad():
            losses.append(float(F.cross_entropy(scores(fooling), classes)))
    assert losses == sorted(losses)
    with torch.no_grad():
        assert losses[0] == pytest.approx(float(F.cross_entropy(scores(pixels), classes)))


def test_a_patch_changes_its_square_alone() -> None:
    scores, pixels, classes, start = setting()
    corners = [(0, 0), (3, 4), (8, 12), (1, 1), (5, 9)]
    bounds = square_bounds(pixels, corners, 4)
    fooling = pgd(scores, pixels, classes, bounds=bounds, start=start, steps=4)
    for image, changed, (top, left) in zip(pixels, fooling, corners, strict=True):
        outside = torch.ones(12, 16, dtype=torch.bool)
        outside[top : top + 4, left : left + 4] = False
        assert torch.equal(image[:, outside], changed[:, outside])
        assert not torch.equal(image[:, ~outside], changed[:, ~outside])
    assert 0 <= fooling.min() <= fooling.max() <= 255


def test_weights_that_need_no_gradients_are_attacked_too() -> None:
    model = perturbed(vit_config()).requires_grad_(False)
    pixels = images_for(model.config, 2).abs().clamp(0, 2) * 100
    moved = pgd(
        lambda values: model(standardise(values, PIXELS)),
        pixels,
        torch.tensor([0, 1]),
        bounds=torch.full((2, 1, 1, 1), 3.0),
        start=torch.zeros_like(pixels),
        steps=2,
    )
    assert not torch.equal(moved, pixels)
