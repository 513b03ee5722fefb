"""The worst change of pixels within given bounds: projected gradient descent (Madry et al., 2018).

Bounds are in levels of 0 to 255, before normalisation. Stronger attacks exist (AutoAttack, more steps, restarts): what
survives this one is an upper bound of what a model withstands.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from vitrail.analysis.relevance import Classes
from vitrail.base.shapes import Images, Logits

STEPS = 10
REACH = 2.5
"""The steps together go this many times as far as the bounds are wide, so that every corner can be reached."""

Bounds = Float[Tensor, "batch #channel #height #width"]
"""How far each value may be moved, in levels."""


@torch.enable_grad()
def pgd(
    scores: Callable[[Images], Logits],
    pixels: Images,
    classes: Classes,
    *,
    bounds: Bounds,
    start: Images,
    steps: int = STEPS,
) -> Images:
    """Return the pixels of the highest loss on the way uphill from a random start.

    x_0 = P(x + bounds * start), x_{k+1} = P(x_k + 2.5 bounds / steps * sign(gradient of the cross-entropy)), where P
    cuts values to `bounds` around the image and to 0 to 255, and `start` is in [-1, 1].
    """
    low, high = (pixels - bounds).clamp(min=0), (pixels + bounds).clamp(max=255)
    point = (pixels + bounds * start).clamp(low, high)
    worst, most = point, torch.full((len(pixels),), -torch.inf, device=pixels.device)
    for step in range(steps + 1):
        point = point.detach().requires_grad_()
        losses = F.cross_entropy(scores(point).float(), classes, reduction="none")
        higher = losses.detach() > most
        most = torch.where(higher, losses.detach(), most)
        worst = torch.where(higher[:, None, None, None], point.detach(), worst)
        if step < steps:
            (slope,) = torch.autograd.grad(losses.sum(), point)
            point = (point + REACH / steps * bounds * slope.sign()).clamp(low, high)
    return worst


def square_bounds(images: Images, corners: list[tuple[int, int]], side: int) -> Float[Tensor, "batch 1 height width"]:
    """Return bounds that allow any colour within a square of each image, and nothing elsewhere."""
    bounds = images.new_zeros(len(images), 1, *images.shape[2:])
    for bound, (top, left) in zip(bounds, corners, strict=True):
        bound[:, top : top + side, left : left + side] = 255.0
    return bounds
