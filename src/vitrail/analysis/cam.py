"""Where a class is seen on the last feature map of convolutions: Grad-CAM (Selvaraju et al., 2017).

Not for the tokens of a pure Vision Transformer: whatever reads a token there begins with a LayerNorm, which forgets its
length, so that the product of a token with its own gradient is next to nothing where the class is.
"""

import torch
from torch import Tensor

from vitrail.analysis.cells import HeatMaps
from vitrail.analysis.relevance import Classes
from vitrail.base.shapes import FeatureMap, Images
from vitrail.model.contract import Model


@torch.enable_grad()
def grad_cam_heat(model: Model, images: Images, classes: Classes) -> HeatMaps:
    """Return what speaks for a class of each image on the last feature map of a ResNet, or of a hybrid's."""
    images = images.detach().requires_grad_()  # so that there is a graph where every weight is frozen
    encoded = model.encode(images)
    logits = model.classify(model.represent(encoded.output))
    (slopes,) = torch.autograd.grad(logits.gather(1, classes[:, None]).sum(), _feature_map(encoded.feature_map))
    return cam(_feature_map(encoded.feature_map).detach(), slopes)


def cam(features: FeatureMap, slopes: FeatureMap) -> HeatMaps:
    """Weigh each channel by its mean slope, and keep what is above 0 of their sum."""
    return torch.einsum("bcrk,bc->brk", features, slopes.mean(dim=(2, 3))).relu()


def _feature_map(features: Tensor | None) -> Tensor:
    assert features is not None  # noqa: S101 - Grad-CAM is offered only where the config has a feature grid
    return features
