"""Which pixels speak for a class: integrated gradients (Sundararajan et al., 2017)."""

import math
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


def path(steps: int) -> list[tuple[float, float]]:
    """Return the points on the path from 0 to 1, each with the width of its part: half equal, half shorter towards 0.

    A network that begins with convolutions and a GroupNorm hardly tells a faint image from a strong one: its output
    leaves that of the baseline within the first thousandth of the path, which equal parts would miss. Its gradient
    falls there as 1 / t, whose integral over a part is exact by its value at (end - start) / log(end / start).
    """
    equal = steps - steps // 2
    first = 1 / (equal + 1) if steps > equal else 0.0
    near = np.geomspace(NEAREST, first, steps // 2).tolist() if steps > equal + 1 else [first] * (steps - equal)
    ends = [0.0, *near, *np.linspace(first, 1, equal + 1)[1:].tolist()]
    return [((end - start) / math.log(end / start) if start else end / 2, end - start) for start, end in pairwise(ends)]


@torch.enable_grad()
def integrated_gradients(
    network: Callable[[Images], Logits], images: Images, classes: Classes, *, steps: int = STEPS
) -> tuple[Images, Float[Tensor, "batch"]]:
    """Return (x - x') times the mean gradient on the straight path from the baseline x', and the error of its sum.

    The baseline is 0, which is the mean colour after normalisation. The attributions of an image sum to
    y(x) - y(x') but for the error that is returned, which falls with the number of steps.
    """
    total = torch.zeros_like(images)
    for place, width in path(steps):
        point = (images * place).detach().requires_grad_()
        (slope,) = torch.autograd.grad(_outputs(network, point, classes).sum(), point)
        total += slope * width
    attributions = images * total
    with torch.no_grad():
        rise = _outputs(network, images, classes) - _outputs(network, torch.zeros_like(images), classes)
    return attributions, attributions.sum(dim=(1, 2, 3)) - rise


def _outputs(network: Callable[[Images], Logits], images: Images, classes: Classes) -> Float[Tensor, "batch"]:
    return network(images).gather(1, classes[:, None]).squeeze(1)
