"""The losses of classification: softmax and sigmoid cross-entropy."""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from vitrail.base.shapes import Logits

Classes = Int[Tensor, "batch"]
Shares = Float[Tensor, "batch"]
PerClass = Float[Tensor, "class"]


def soft_targets(
    targets: Classes, partners: Classes, shares: Shares, num_classes: int, *, smoothing: float = 0.0
) -> Logits:
    """Spread one over the classes: a share for the image's own, the rest for its partner's, `smoothing` for all."""
    hot = torch.zeros(targets.shape[0], num_classes, device=targets.device)
    hot.scatter_add_(1, targets[:, None], shares[:, None])
    hot.scatter_add_(1, partners[:, None], 1 - shares[:, None])
    return hot * (1 - smoothing) + smoothing / num_classes if smoothing else hot


def softmax_cross_entropy(logits: Logits, soft: Logits, weights: PerClass | None = None) -> Tensor:
    """Average -sum_k w_k y_k log softmax(x)_k over the batch.

    The sum of the weights is not divided out: the loss of a batch stays the mean of the losses of its images, however
    it is cut into ranks and micro-batches.
    """
    soft = soft if weights is None else soft * weights
    return -(soft * F.log_softmax(logits.float(), dim=1)).sum(1).mean()


def sigmoid_cross_entropy(logits: Logits, soft: Logits, weights: PerClass | None = None) -> Tensor:
    """Average sum_k -y_k log s(x_k) - (1 - y_k) log(1 - s(x_k)) over the batch: the loss of JFT and ImageNet-21k."""
    each = F.binary_cross_entropy_with_logits(logits.float(), soft, reduction="none", weight=weights)
    return each.sum(1).mean()
