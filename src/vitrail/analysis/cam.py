"""Where a class is seen on the last feature map of convolutions: Grad-CAM (Selvaraju et al., 2017).

Grad-CAM weighs a channel by its mean gradient, since a mean over places stands between the map and the logits of a
ResNet. In a hybrid an encoder stands there, which treats each place as it likes: a channel may speak for the class in
one place and against it in another. So each place has its own gradient (HiResCAM, Draelos and Carin, 2020), which for a
ResNet gives the same map. Gradients hold the scale of LayerNorms: see `held_scale`.
"""

import torch
from torch import Tensor

from vitrail.analysis.cells import HeatMaps
from vitrail.analysis.held_scale import HeldScale
from vitrail.analysis.relevance import Classes
from vitrail.base.shapes import FeatureMap, Images
from vitrail.model.contract import Model


@torch.enable_grad()
def grad_cam_heat(model: Model, images: Images, classes: Classes) -> HeatMaps:
    """Return what speaks for a class of each image on the last feature map of a ResNet, or of a hybrid's."""
    images = images.detach().requires_grad_()  # so that there is a graph where every weight is frozen
    with HeldScale():
        encoded = model.encode(images)
        logits = model.classify(model.represent(encoded.output))
    (slopes,) = torch.autograd.grad(logits.gather(1, classes[:, None]).sum(), _feature_map(encoded.feature_map))
    return cam(_feature_map(encoded.feature_map).detach(), slopes)


def cam(features: FeatureMap, slopes: FeatureMap) -> HeatMaps:
    """Weigh each channel by its slope at each place, and keep what is above 0 of their sum."""
    return (features * slopes).sum(dim=1).relu()


def _feature_map(features: Tensor | None) -> Tensor:
    assert features is not None  # noqa: S101 - Grad-CAM is offered only where the config has a feature grid
    return features
