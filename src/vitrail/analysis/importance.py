"""How much a part of a network matters: what changes when its branch is set to zero."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from vitrail.base.progress import Progress, silent
from vitrail.model.anatomy import Branch
from vitrail.model.contract import Model

Outputs = Float[Tensor, "image output"]


@dataclass(frozen=True, kw_only=True)
class BranchFigure:
    """What happens without one branch."""

    branch: Branch
    change: float
    """How much the outputs change: of probabilities from 0 to 1, of features from 0 to 2."""
    accuracy: float | None
    """The accuracy without it; None where the images have no classes."""


def measure_branches(
    model: Model,
    outputs: Callable[[], Outputs],
    *,
    change: Callable[[Outputs, Outputs], float],
    accuracy: Callable[[Outputs], float] | None = None,
    branches: Sequence[Branch] | None = None,
    progress: Progress = silent,
) -> list[BranchFigure]:
    """Compute the outputs without each branch, one after the other, and compare them with those of the whole."""
    chosen = model.branches() if branches is None else branches
    whole = outputs()
    figures = []
    for branch in progress(chosen, total=len(chosen), title="leaving out branches"):
        with without(model, branch):
            partial = outputs()
        right = None if accuracy is None else accuracy(partial)
        figures.append(BranchFigure(branch=branch, change=change(whole, partial), accuracy=right))
    return figures


@contextmanager
def without(model: Model, branch: Branch) -> Iterator[None]:
    """Leave a branch of the network out for a while: its last weights are zero, and after that what they were."""
    parameters = dict(model.named_parameters())
    with torch.no_grad():
        parts = [_part(parameters[name], branch) for name in branch.weights]
        stored = [part.clone() for part in parts]
        try:
            for part in parts:
                part.zero_()
            yield
        finally:
            for part, values in zip(parts, stored, strict=True):
                part.copy_(values)


def probability_change(before: Float[Tensor, "image class"], after: Float[Tensor, "image class"]) -> float:
    """Return half the sum of |p - p'| over the classes, as a mean over images: 0 is no change, 1 the most."""
    return float((before.double() - after.double()).abs().sum(dim=1).mean() / 2)


def feature_change(before: Float[Tensor, "image width"], after: Float[Tensor, "image width"]) -> float:
    """Return 1 less the cosine of features before and after, as a mean over images; for a network without classes."""
    return float(1 - torch.nn.functional.cosine_similarity(before.double(), after.double(), dim=1).mean())


def _part(parameter: Tensor, branch: Branch) -> Tensor:
    return parameter if branch.columns is None else parameter[:, slice(*branch.columns)]
