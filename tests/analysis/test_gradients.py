import captum.attr
import pytest
import torch

from tests.tiny import close, hybrid_config, images_for, perturbed, resnet_config, vit_config
from vitrail.analysis.gradients import integrated_gradients

CLASSES = torch.tensor([2, 5])


@pytest.mark.parametrize("config", [vit_config(), vit_config(pool="mean"), hybrid_config(), resnet_config()])
def test_attributions_are_those_of_captum(config) -> None:
    model, images = perturbed(config).double(), images_for(config).double()
    attributions, errors = integrated_gradients(model, images, CLASSES, steps=8)
    wanted, missing = captum.attr.IntegratedGradients(model).attribute(
        images, target=CLASSES, n_steps=8, method="riemann_middle", return_convergence_delta=True
    )
    close(attributions, wanted, 1e-10)
    close(errors, missing, 1e-10)


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
