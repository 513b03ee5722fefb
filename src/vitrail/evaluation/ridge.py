"""The paper's few-shot classifier: regularised least squares from frozen features to {-1, 1}^K, in closed form.

With X the whitened features and a constant feature of 100 (a bias that is hardly regularised), and Y = 2 one-hot - 1,

    W = (X^T X + l2 I)^-1 X^T Y  =  X^T (X X^T + l2 I)^-1 Y

The first form costs least when there are more images than features, the second otherwise. Either matrix is decomposed
once, as Q diag(e) Q^T, after which every l2 is a division (Sec. 4.1; the constants are big_vision's).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from vitrail.evaluation.defaults import L2
from vitrail.evaluation.features import Matrix
from vitrail.evaluation.whitening import Whitening

Codes = Int[np.ndarray, "image"]
Weights = Float[Tensor, "input class"]
Queries = Float[Tensor, "query representation"]
Classes = Int[np.ndarray, "query"]
Scores = Float[Tensor, "some class"]

BIAS = 100.0
"""The constant feature."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Decomposition:
    """Training images, decomposed: W = back diag(1 / (e + l2)) onto, for any l2."""

    whitening: Whitening
    eigenvalues: Float[Tensor, "basis"]
    onto: Float[Tensor, "basis class"]
    """Q^T X^T Y, or Q^T Y."""
    back: Float[Tensor, "input basis"]
    """Q, or X^T Q."""

    def weights(self, l2: float = L2) -> Weights:
        """Solve for one strength of regularisation."""
        return self.back @ (self.onto / (self.eigenvalues + l2)[:, None])

    def scores(self, queries: Queries, l2: float = L2) -> Iterator[tuple[slice, Scores]]:
        """Yield the scores of some rows at a time, with their places: about 1 for the class, -1 for the others."""
        weights = self.weights(l2)
        for rows, white in self.whitening.parts(queries, weights.shape[1]):
            yield rows, torch.addmm(BIAS * weights[-1], white, weights[:-1])

    def predict(self, queries: Queries, l2: float = L2) -> Classes:
        """Return the class of the highest score for each row; of equal scores, the first."""
        answers = np.empty(len(queries), dtype=np.int64)
        for rows, scores in self.scores(queries, l2):
            answers[rows] = scores.argmax(1).numpy()
        return answers


def decompose(features: Matrix, targets: Codes, num_classes: int) -> Decomposition:
    """Decompose training images by the form that costs less."""
    fewer = len(features) < features.shape[1] + 1
    return (decompose_dual if fewer else decompose_primal)(features, targets, num_classes)


def decompose_primal(features: Matrix, targets: Codes, num_classes: int) -> Decomposition:
    """Decompose X^T X; X is never in memory as a whole, only its products are."""
    whitening = Whitening.of(features)
    inputs = features.shape[1] + 1
    gram = torch.zeros(inputs, inputs, dtype=torch.float64)
    sums = torch.zeros(num_classes, inputs, dtype=torch.float64)  # of X over the images of each class
    classes = torch.from_numpy(targets.astype(np.int64))
    for rows, white in whitening.parts(features):
        block = _with_bias(white)
        gram.addmm_(block.mT, block)
        sums.index_add_(0, classes[rows], block)
    products = (2 * sums - sums.sum(0)).mT  # X^T Y: Y is 2 for the image's class, minus 1 for all
    eigenvalues, basis = torch.linalg.eigh(gram)
    return Decomposition(
        whitening=whitening, eigenvalues=eigenvalues.clamp_min_(0.0), onto=basis.mT @ products, back=basis
    )


def decompose_dual(features: Matrix, targets: Codes, num_classes: int) -> Decomposition:
    """Decompose X X^T, for fewer images than features."""
    whitening = Whitening.of(features)
    block = _with_bias(whitening(features))
    signs = torch.full((len(features), num_classes), -1.0, dtype=torch.float64)
    signs.scatter_(1, torch.from_numpy(targets.astype(np.int64))[:, None], 1.0)
    eigenvalues, basis = torch.linalg.eigh(block @ block.mT)
    return Decomposition(
        whitening=whitening, eigenvalues=eigenvalues.clamp_min_(0.0), onto=basis.mT @ signs, back=block.mT @ basis
    )


def ridge(
    features: Matrix, targets: Codes, num_classes: int, queries: Queries, *, l2: Sequence[float] = (L2,)
) -> dict[str, Classes]:
    """Fit the training images once, and answer for others with each strength of regularisation."""
    decomposition = decompose(features, targets, num_classes)
    if len(l2) == 1:
        return {"ridge": decomposition.predict(queries, l2[0])}
    return {f"ridge l2={strength:g}": decomposition.predict(queries, strength) for strength in l2}


def _with_bias(white: Matrix) -> Float[Tensor, "image input"]:
    return torch.nn.functional.pad(white, (0, 1), value=BIAS)
