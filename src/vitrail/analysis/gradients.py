"""Which pixels speak for a class: integrated gradients (Sundararajan et al., 2017)."""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from vitrail.analysis.relevance import Classes
from vitrail.base.shapes import Images, Logits

STEPS = 32


@torch.enable_grad()
def integrated_gradients(
    network: Callable[[Images], Logits], images: Images, classes: Classes, *, steps: int = STEPS
) -> tuple[Images, Float[Tensor, "batch"]]:
    """Return (x - x') times the mean gradient on the straight path from the baseline x', and the error of its sum.

    The baseline is 0, which is the mean colour after normalisation. The attributions of an image sum to
    y(x) - y(x') but for the error that is returned, which falls with the number of steps; these are the midpoints of
    equal parts of the path.
    """
    total = torch.zeros_like(images)
    for step in range(steps):
        point = (images * ((step + 0.5) / steps)).detach().requires_grad_()
        (slope,) = torch.autograd.grad(_outputs(network, point, classes).sum(), point)
        total += slope
    attributions = images * total / steps
    with torch.no_grad():
        rise = _outputs(network, images, classes) - _outputs(network, torch.zeros_like(images), classes)
    return attributions, attributions.sum(dim=(1, 2, 3)) - rise


def _outputs(network: Callable[[Images], Logits], images: Images, classes: Classes) -> Float[Tensor, "batch"]:
    return network(images).gather(1, classes[:, None]).squeeze(1)
