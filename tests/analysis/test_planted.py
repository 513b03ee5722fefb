"""Where the truth is known: the class of an image is a small square, and maps must point at it."""

import pytest

from tests.analysis.planted import CONFIGS, PIXELS, planted_images, trained
from vitrail.analysis.cells import Cells, mean_colour
from vitrail.analysis.faithfulness import measure, order_of, random_order
from vitrail.analysis.methods import applicable, best_method, heat_maps, probabilities, quick_method

GRID = Cells(image_size=(48, 48), grid=(6, 6))
FITTING = {
    "ViT": ("attention", "rollout", "gradient-attention", "integrated-gradients", "occlusion"),
    "mean": ("attention", "rollout", "gradient-attention", "integrated-gradients", "occlusion"),
    "hybrid": ("attention", "rollout", "gradient-attention", "integrated-gradients", "occlusion", "grad-cam"),
    "ResNet": ("integrated-gradients", "occlusion", "grad-cam"),
    # The last of two blocks attends to tokens into which the first has mixed the square: `attention` is left out.
    "deep": ("rollout", "gradient-attention", "integrated-gradients", "occlusion"),
}
CASES = [(name, method) for name, methods in FITTING.items() for method in methods]


@pytest.mark.parametrize(("name", "method"), CASES)
def test_the_map_points_at_the_square_that_is_the_class(name, method) -> None:
    engine, accuracy = trained(name)
    pixels, classes, cells = planted_images(40, seed=777)
    assert accuracy > 0.9
    values = GRID.means(heat_maps(method, engine, pixels, classes).maps)
    assert (values.argmax(dim=1) == cells).double().mean() >= 0.9


@pytest.mark.parametrize(("name", "method"), CASES)
def test_deletion_and_insertion_of_such_a_map_beat_random_ones(name, method) -> None:
    engine, _ = trained(name)
    pixels, classes, _ = planted_images(10, seed=778)
    colour = mean_colour(PIXELS)
    values = GRID.means(heat_maps(method, engine, pixels, classes).maps)
    gains = []
    for image, number, value in zip(pixels, classes.tolist(), values, strict=True):
        orders = (order_of(value, 0), random_order(len(GRID), 0, number))
        ours, random = (
            measure(lambda batch: probabilities(engine, batch), image, number, order, cells=GRID, colour=colour)
            for order in orders
        )
        gains.append((random.deletion_area - ours.deletion_area, ours.insertion_area - random.insertion_area))
    deletion, insertion = (sum(column) / len(gains) for column in zip(*gains, strict=True))
    assert deletion > 0.1
    assert insertion > 0.1


@pytest.mark.parametrize("name", CONFIGS)
def test_every_method_of_a_model_is_among_those_and_so_is_the_choice_of_auto(name) -> None:
    engine, _ = trained(name)
    missing = {"attention"} if name == "deep" else set()
    assert set(applicable(engine)) == {*FITTING[name], *missing}
    assert {best_method(engine)[0], quick_method(engine)[0]} <= set(FITTING[name])
