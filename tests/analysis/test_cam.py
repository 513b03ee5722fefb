import captum.attr
import torch

from tests.tiny import close, hybrid_config, images_for, perturbed, resnet_config
from vitrail.analysis.cam import cam, grad_cam_heat
from vitrail.analysis.held_scale import HeldScale

CLASSES = torch.tensor([2, 5])


def test_the_map_of_a_hybrid_is_that_of_captum_on_its_backbone() -> None:
    config = hybrid_config()
    model, images = perturbed(config, by=0.3).double(), images_for(config).double()
    with HeldScale():
        products = captum.attr.LayerGradientXActivation(model, model.backbone).attribute(images, target=CLASSES)
    heat = grad_cam_heat(model, images, CLASSES)
    assert heat.shape[1:] == config.feature_grid
    close(heat, products.sum(dim=1).relu(), 1e-10)


def test_with_a_mean_behind_the_map_it_is_the_grad_cam_of_captum() -> None:
    """The slope of a channel is then the same everywhere, and so its mean, by which Grad-CAM weighs the channel."""
    layers = [torch.nn.Conv2d(3, 5, 3), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten()]
    network = torch.nn.Sequential(*layers, torch.nn.Linear(5, 7)).double()
    images = torch.randn(2, 3, 9, 8).double()
    wanted = captum.attr.LayerGradCam(network, layers[1]).attribute(images, target=CLASSES, relu_attributions=True)
    features = layers[1](layers[0](images)).detach().requires_grad_()
    outputs = network[2:](features).gather(1, CLASSES[:, None])
    close(cam(features, *torch.autograd.grad(outputs.sum(), features)), wanted[:, 0], 1e-12)


def test_the_map_of_a_resnet_is_its_weights_on_the_map_that_is_pooled() -> None:
    """With a mean and a linear layer behind the map, Grad-CAM is the class activation map (Zhou et al., 2016)."""
    config = resnet_config()
    model, images = perturbed(config, by=0.3).double(), images_for(config).double()
    features = model.norm(model.encode(images, layers=[-1]).layers[2]).relu()
    weights = model.linear.weight[CLASSES] / features[0, 0].numel()
    heat = grad_cam_heat(model, images, CLASSES)
    assert heat.shape[1:] == config.feature_grid
    close(heat, torch.einsum("bchw,bc->bhw", features, weights).relu(), 1e-10)
