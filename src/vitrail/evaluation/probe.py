"""A linear probe: multinomial logistic regression on frozen features by L-BFGS, for comparison.

    minimise  C sum_i -log softmax(W x_i + b)[y_i]  +  |W|^2 / 2

as scikit-learn's LogisticRegression does, always with a row of W for each class. x are the features whitened as for
least squares, which gives C the same meaning for every model. Loss and gradient are written out and added up over a few
rows at a time; L-BFGS gets them divided by C N, a mean over the images.
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from vitrail.evaluation.defaults import C
from vitrail.evaluation.features import Matrix
from vitrail.evaluation.whitening import Whitening

STEPS = 500
"""The most iterations."""
TOLERANCE = 1e-4
"""No element of the gradient is larger at the end, unless the steps have run out; scikit-learn's default too."""
MOST_WHITENED = 2**26
"""Numbers in float64 that stay whitened through all steps: 512 MiB; larger features are whitened again in each step."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Probe:
    """A trained probe."""

    whitening: Whitening
    weights: Float[Tensor, "representation class"]
    bias: Float[Tensor, "class"]
    loss: float
    """The minimised loss, as a mean over the images."""

    def predict(self, queries: Float[Tensor, "query representation"]) -> Int[np.ndarray, "query"]:
        """Return the class of the highest score for each row; of equal scores, the first."""
        answers = np.empty(len(queries), dtype=np.int64)
        for rows, white in self.whitening.parts(queries, self.weights.shape[1]):
            answers[rows] = torch.addmm(self.bias, white, self.weights).argmax(1).numpy()
        return answers


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

    blocks = list(whitening.parts(features, num_classes)) if features.numel() <= MOST_WHITENED else None

    @torch.no_grad()
    def evaluate() -> float:
        """Set the gradients and return the loss."""
        loss = 0.5 * float(weights.square().sum()) / (c * images)
        weights.grad, bias.grad = weights / (c * images), torch.zeros_like(bias)
        for rows, white in blocks or whitening.parts(features, num_classes):
            own = classes[rows, None]
            logs = torch.addmm(bias, white, weights).log_softmax(1)
            loss -= float(logs.gather(1, own).sum()) / images
            wrong = logs.exp_()
            wrong.scatter_add_(1, own, torch.full_like(own, -1.0, dtype=torch.float64))
            weights.grad.addmm_(white.mT, wrong, alpha=1 / images)
            bias.grad.add_(wrong.sum(0), alpha=1 / images)
        return loss

    optimizer.step(evaluate)
    return Probe(whitening=whitening, weights=weights.detach(), bias=bias.detach(), loss=evaluate())


def probe(
    features: Matrix,
    targets: Int[np.ndarray, "image"],
    num_classes: int,
    queries: Float[Tensor, "query representation"],
    *,
    c: float = C,
) -> dict[str, Int[np.ndarray, "query"]]:
    """Train a probe and answer for other images."""
    return {"probe": fit_probe(features, targets, num_classes, c=c).predict(queries)}
