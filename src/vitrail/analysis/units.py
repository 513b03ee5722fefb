"""Hidden units that never speak: of the MLP of a block, or of a unit of a ResNet."""

import torch
from jaxtyping import Float
from torch import Tensor

ACTIVE = 1e-3
"""A unit speaks where the size of its activation is above this share of the layer's root mean square."""


def unit_peaks(activations: Float[Tensor, "... unit"]) -> Float[Tensor, "2 unit"]:
    """Return, for each hidden unit, its largest size on these images, and its mean square."""
    flat = activations.detach().flatten(0, -2)
    return torch.stack([flat.abs().amax(dim=0), flat.square().mean(dim=0)]).float().cpu()


def dead_units(peaks: Float[Tensor, "unit"], squares: Float[Tensor, "unit"]) -> int:
    """Count the units whose activation is never above a thousandth of the layer's root mean square.

    After a ReLU that is a unit that is never above 0; GELU and SiLU are never exactly 0.
    """
    scale = float(squares.mean().sqrt())
    return int((peaks <= ACTIVE * scale).sum()) if scale > 0 else len(peaks)
