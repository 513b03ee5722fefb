"""What training changed: the relative difference of two networks' weights, layer by layer."""

from dataclasses import dataclass

import torch

from vitrail.model.contract import Model


@dataclass(frozen=True, kw_only=True)
class WeightChange:
    """How far the weights of a layer moved."""

    layer: str
    change: float
    """The length of the difference of all its weights that both networks have, as a share of their length before."""
    compared: int
    """How many tensors both have, of the same shape."""


@torch.no_grad()
def weight_changes(before: Model, after: Model) -> tuple[list[WeightChange], list[str]]:
    """Return the change of each layer of the first network, and the tensors that are not in both, or of other shapes.

    |w' - w| / |w| over all tensors of the layer: 0 is no change; weights of one size that have nothing in common
    give sqrt(2).
    """
    ours, theirs = dict(before.named_parameters()), dict(after.named_parameters())
    same = [name for name, value in ours.items() if name in theirs and theirs[name].shape == value.shape]
    changes = []
    for layer in before.layers():
        names = [name for name in same if name.startswith(layer.prefixes)]
        if not names:
            continue
        lengths = [float(ours[name].double().square().sum()) for name in names]
        moved = [float((theirs[name].double().cpu() - ours[name].double().cpu()).square().sum()) for name in names]
        size = sum(lengths) ** 0.5
        change = sum(moved) ** 0.5 / size if size > 0 else float("nan")
        changes.append(WeightChange(layer=layer.name, change=change, compared=len(names)))
    return changes, sorted((ours.keys() | theirs.keys()) - set(same))
