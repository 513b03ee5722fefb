"""The error for model outputs that are not finite."""

import numpy as np
from jaxtyping import Bool

from vitrail.base.errors import InputError
from vitrail.data.dataset import Dataset


def refuse_bad_numbers(what: str, dataset: Dataset, bad: Bool[np.ndarray, "image"]) -> None:
    """Refuse scores or features that are not finite, and name an image that has them."""
    if bad.any():
        raise InputError(
            f"the model's {what} are not finite for {int(bad.sum()):,} of {len(dataset):,} images, such as "
            f"{dataset.name(int(bad.argmax()))}; check its weights with `vitrail verify`."
        )
