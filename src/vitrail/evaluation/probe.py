"""A linear probe: multinomial logistic regression on frozen features by L-BFGS, for comparison.

    minimise  C sum_i -log softmax(W x_i + b)[y_i]  +  |W|^2 / 2

as scikit-learn's LogisticRegression does, always with a row of W for each class. x are the features whitened as for
least squares, so that C means the same for every model. Loss and gradient are written out and added up over a few rows
at a time; what is handed to L-BFGS is divided by C N, a mean over the images.
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from vitrail.evaluation.features import Matrix
from vitrail.evaluation.whitening import Whitening

C = 1.0
STEPS = 500
"""The most iterations."""
TOLERANCE = 1e-4
"""No element of the gradient is larger at the end, unless the steps have run out; scikit-learn's default too."""
KEPT = 2**26
"""Numbers in float64 that are kept whitened through all steps: 512 MiB; more are whitened again in each."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Probe:
    """A trained probe."""

    whitening: Whitening
    weights: Float[Tensor, "representation class"]
    bias: Float[Tensor, "class"]
    loss: float
    """What was minimised, as a mean over the images."""

    def predict(self, asked: Float[Tensor, "asked representation"]) -> Int[np.ndarray, "asked"]:
        """Return the class of the highest score for each row; of equal scores, the first."""
        found = np.empty(len(asked), dtype=np.int64)
        for rows, white in self.whitening.parts(asked, self.weights.shape[1]):
            found[rows] = torch.addmm(self.bias, white, self.weights).argmax(1).numpy()
        return found


def fit_probe(
    features: Matrix,
    targets: Int[np.ndarray, "image"],
    num_classes: int,
    *,
    c: float = C,
    steps: int = STEPS,
    tolerance: float = TOLERANCE,
) -> Probe:
    """Train a probe from zero."""
    whitening = Whitening.of(features)
    images, inputs = features.shape
    classes = torch.from_numpy(targets.astype(np.int64))
    weights = torch.zeros(inputs, num_classes, dtype=torch.float64, requires_grad=True)
    bias = torch.zeros(num_classes, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS(
        [weights, bias],
        max_iter=steps,
        tolerance_grad=tolerance,
        tolerance_change=0.0,
        history_size=10,
        line_search_fn="strong_wolfe",
    )

    kept = list(whitening.parts(features, num_classes)) if features.numel() <= KEPT else None

    @torch.no_grad()
    def look() -> float:
        """Set the gradients and return the loss."""
        loss = 0.5 * float(weights.square().sum()) / (c * images)
        weights.grad, bias.grad = weights / (c * images), torch.zeros_like(bias)
        for rows, white in kept or whitening.parts(features, num_classes):
            own = classes[rows, None]
            logs = torch.addmm(bias, white, weights).log_softmax(1)
            loss -= float(logs.gather(1, own).sum()) / images
            wrong = logs.exp_()
            wrong.scatter_add_(1, own, torch.full_like(own, -1.0, dtype=torch.float64))
            weights.grad.addmm_(white.mT, wrong, alpha=1 / images)
            bias.grad.add_(wrong.sum(0), alpha=1 / images)
        return loss

    optimizer.step(look)
    return Probe(whitening=whitening, weights=weights.detach(), bias=bias.detach(), loss=look())


def probe(
    features: Matrix,
    targets: Int[np.ndarray, "image"],
    num_classes: int,
    asked: Float[Tensor, "asked representation"],
    *,
    c: float = C,
) -> dict[str, Int[np.ndarray, "asked"]]:
    """Train a probe and answer for other images."""
    return {"probe": fit_probe(features, targets, num_classes, c=c).predict(asked)}
