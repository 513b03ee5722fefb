"""Which pixels speak for a class: integrated gradients (Sundararajan et al., 2017)."""

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from vitrail.analysis.relevance import Classes
from vitrail.base.shapes import Images, Logits

STEPS = 32
NEAREST = 1e-8
"""The end of the first part of the path, next to the baseline."""


def path(steps: int) -> list[float]:
    """Return the ends of the parts of the path, from 0 to 1: half of them equal, half of them ever shorter towards 0.

    A network that begins with convolutions and a GroupNorm hardly tells a faint image from a strong one: its output
    leaves that of the baseline within the first thousandth of the path, which equal parts would miss.
    """
    equal = steps - steps // 2
    first = 1 / (equal + 1) if steps > equal else 0.0
    near = np.geomspace(NEAREST, first, steps // 2).tolist() if steps > equal + 1 else [first] * (steps - equal)
    return [0.0, *near, *np.linspace(first, 1, equal + 1)[1:].tolist()]


@torch.enable_grad()
def integrated_gradients(
    network: Callable[[Images], Logits], images: Images, classes: Classes, *, steps: int = STEPS
) -> tuple[Images, Float[Tensor, "batch"]]:
    """Return (x - x') times the mean gradient on the straight path from the baseline x', and the error of its sum.

    The baseline is 0, which is the mean colour after normalisation. The attributions of an image sum to
    y(x) - y(x') but for the error that is returned, which falls with the number of steps; these are the midpoints of
    the parts of `path`.
    """
    total = torch.zeros_like(images)
    for start, end in pairwise(path(steps)):
        point = (images * ((start + end) / 2)).detach().requires_grad_()
        (slope,) = torch.autograd.grad(_outputs(network, point, classes).sum(), point)
        total += slope * (end - start)
    attributions = images * total
    with torch.no_grad():
        rise = _outputs(network, images, classes) - _outputs(network, torch.zeros_like(images), classes)
    return attributions, attributions.sum(dim=(1, 2, 3)) - rise


def _outputs(network: Callable[[Images], Logits], images: Images, classes: Classes) -> Float[Tensor, "batch"]:
    return network(images).gather(1, classes[:, None]).squeeze(1)
