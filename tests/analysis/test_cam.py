import captum.attr
import torch

from tests.tiny import close, hybrid_config, images_for, perturbed, resnet_config
from vitrail.analysis.cam import grad_cam_heat

CLASSES = torch.tensor([2, 5])


def test_the_map_of_a_hybrid_is_that_of_captum_on_its_backbone() -> None:
    config = hybrid_config()
    model, images = perturbed(config, by=0.3).double(), images_for(config).double()
    wanted = captum.attr.LayerGradCam(model, model.backbone).attribute(images, target=CLASSES, relu_attributions=True)
    heat = grad_cam_heat(model, images, CLASSES)
    assert heat.shape[1:] == config.feature_grid
    close(heat, wanted[:, 0], 1e-10)


def test_the_map_of_a_resnet_is_its_weights_on_the_map_that_is_pooled() -> None:
    """With a mean and a linear layer behind the map, Grad-CAM is the class activation map (Zhou et al., 2016)."""
    config = resnet_config()
    model, images = perturbed(config, by=0.3).double(), images_for(config).double()
    features = model.norm(model.encode(images, layers=[-1]).layers[2]).relu()
    weights = model.linear.weight[CLASSES] / features[0, 0].numel()
    heat = grad_cam_heat(model, images, CLASSES)
    assert heat.shape[1:] == config.feature_grid
    close(heat, torch.einsum("bchw,bc->bhw", features, weights).relu(), 1e-10)
