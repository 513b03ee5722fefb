"""Answers: the most probable classes of each image, from the scores of all."""

from jaxtyping import Float
from torch import Tensor

from vitrail.base.errors import ImageError

Answer = tuple[tuple[int, float], ...] | ImageError
"""The most probable classes by number, the first one first; or why there is no answer."""
Scores = Float[Tensor, "batch class"]

DIGITS = 7
"""Significant digits of a probability: what float32 carries."""


def most_probable(scores: Scores, top: int) -> list[Answer]:
    """Return the `top` classes of each image, the most probable first; of equal ones, the one that comes first."""
    probabilities, classes = scores.sort(dim=1, descending=True, stable=True)
    answers: list[Answer] = []
    for finite, values, numbers in zip(
        scores.isfinite().all(1).tolist(), probabilities[:, :top].tolist(), classes[:, :top].tolist(), strict=True
    ):
        if finite:
            rounded = (float(f"{value:.{DIGITS}g}") for value in values)
            answers.append(tuple(zip(numbers, rounded, strict=True)))
        else:
            answers.append(ImageError("the model's scores for it are not finite; `vitrail verify` checks its weights."))
    return answers
