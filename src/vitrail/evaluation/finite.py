"""What is said when a model answers with numbers that are none."""

import numpy as np
from jaxtyping import Bool

from vitrail.base.errors import InputError
from vitrail.data.dataset import Dataset


def refuse_bad_numbers(what: str, dataset: Dataset, bad: Bool[np.ndarray, "image"]) -> None:
    """Refuse scores or features that are not finite, with an image that has such."""
    if bad.any():
        raise InputError(
            f"the model's {what} are not finite for {int(bad.sum()):,} of {len(dataset):,} images, such as "
            f"{dataset.name(int(bad.argmax()))}; `vitrail verify` tells whether its weights are."
        )
