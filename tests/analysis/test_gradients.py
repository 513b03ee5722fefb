from itertools import pairwise

import captum.attr
import pytest
import torch

from tests.tiny import close, hybrid_config, images_for, perturbed, resnet_config, vit_config
from vitrail.analysis import gradients
from vitrail.analysis.gradients import integrated_gradients, path

CLASSES = torch.tensor([2, 5])


@pytest.mark.parametrize("config", [vit_config(), vit_config(pool="mean"), hybrid_config(), resnet_config()])
def test_attributions_on_equal_parts_of_the_path_are_those_of_captum(config, monkeypatch) -> None:
    monkeypatch.setattr(gradients, "path", lambda steps: [((step + 0.5) / steps, 1 / steps) for step in range(steps)])
    model, images = perturbed(config).double(), images_for(config).double()
    attributions, errors = integrated_gradients(model, images, CLASSES, steps=8)
    wanted, missing = captum.attr.IntegratedGradients(model).attribute(
        images, target=CLASSES, n_steps=8, method="riemann_middle", return_convergence_delta=True
    )
    close(attributions, wanted, 1e-10)
    close(errors, missing, 1e-10)


@pytest.mark.slow
@pytest.mark.parametrize(("config", "most"), [(vit_config(), 0.001), (hybrid_config(), 0.01), (resnet_config(), 0.04)])
def test_attributions_come_near_to_those_of_captum_with_very_many_points(config, most) -> None:
    """ReLUs and GroupNorms bend the path in many places, so that both come closer to the integral only slowly."""
    model, images = perturbed(config).double(), images_for(config).double()
    attributions, _ = integrated_gradients(model, images, CLASSES, steps=256)
    points = {"method": "gausslegendre", "n_steps": 24}
    method = captum.attr.IntegratedGradients(model)
    ends = [0, *(10.0**power for power in range(-10, 1))]
    wanted = sum(
        method.attribute(images * end, images * start, target=CLASSES, **points) for start, end in pairwise(ends)
    )
    assert float((attributions - wanted).abs().sum() / wanted.abs().sum()) < most


def test_a_network_that_forgets_the_scale_of_its_input_does_not_lose_its_sum() -> None:
    """Equal steps find next to nothing of the difference of the outputs: it lies at the very start of the path."""
    weight = torch.randn(7, 60).double()
    images = torch.randn(2, 3, 4, 5).double()

    def network(x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.layer_norm(x.flatten(1), (60,), eps=1e-7) @ weight.T

    rise = (network(images) - network(images * 0)).gather(1, CLASSES[:, None]).squeeze(1)
    _, errors = integrated_gradients(network, images, CLASSES)
    assert float((errors / rise).abs().max()) < 0.05
    _, missing = captum.attr.IntegratedGradients(network).attribute(
        images, target=CLASSES, n_steps=32, method="riemann_middle", return_convergence_delta=True
    )
    assert float((missing / rise).abs().min()) > 0.9


@pytest.mark.parametrize("steps", [1, 2, 3, 4, 32, 1000])
def test_the_parts_of_the_path_are_as_many_as_steps_and_fill_it(steps) -> None:
    points, widths = zip(*path(steps), strict=True)
    assert len(points) == steps
    assert sum(widths) == pytest.approx(1)
    assert all(start < end for start, end in pairwise((0.0, *points, 1.0)))
    assert min(widths) > 0


def test_attributions_sum_to_the_rise_of_the_output_the_better_the_more_steps() -> None:
    config = vit_config()
    model, images = perturbed(config).double(), images_for(config).double()
    rise = (model(images) - model(torch.zeros_like(images))).gather(1, CLASSES[:, None]).squeeze(1)
    misses = []
    for steps in (4, 16, 64):
        attributions, errors = integrated_gradients(model, images, CLASSES, steps=steps)
        close(attributions.sum(dim=(1, 2, 3)) - rise, errors, 1e-9)
        misses.append(float(errors.abs().max()))
    assert misses[0] > 4 * misses[1] > 16 * misses[2]


def test_the_attributions_of_a_linear_model_are_weight_times_pixel_in_one_step() -> None:
    weight = torch.randn(7, 3 * 4 * 5).double()
    images = torch.randn(2, 3, 4, 5).double()
    attributions, errors = integrated_gradients(lambda x: x.flatten(1) @ weight.T, images, CLASSES, steps=1)
    close(attributions, weight[CLASSES].view(2, 3, 4, 5) * images, 1e-12)
    close(errors, torch.zeros(2), 1e-12)
