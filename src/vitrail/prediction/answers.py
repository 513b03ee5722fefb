"""Answers: the most probable classes of each image, from the scores of all."""

from jaxtyping import Float
from torch import Tensor

from vitrail.base.errors import ImageError
from vitrail.prediction.prediction import Answer, rounded

Scores = Float[Tensor, "batch class"]


def most_probable(scores: Scores, top: int) -> list[Answer]:
    """Return the `top` classes of each image, the most probable first; of equal ones, the one that comes first."""
    probabilities, classes = scores.sort(dim=1, descending=True, stable=True)
    answers: list[Answer] = []
    for finite, values, numbers in zip(
        scores.isfinite().all(1).tolist(), probabilities[:, :top].tolist(), classes[:, :top].tolist(), strict=True
    ):
        if finite:
            answers.append(tuple(zip(numbers, map(rounded, values), strict=True)))
        else:
            answers.append(ImageError("the model's scores for it are not finite; `vitrail verify` checks its weights."))
    return answers
