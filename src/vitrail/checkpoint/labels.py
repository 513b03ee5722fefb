"""The class names of a model: those that the user names, or those of its file."""

import os
from collections.abc import Sequence
from pathlib import Path

from vitrail.checkpoint.store import check_labels
from vitrail.data.labels import read_labels

Labels = Sequence[str] | str | os.PathLike[str]
"""Names of classes in the order of the outputs, or a file of them."""


def class_names(labels: Labels | None, own: tuple[str, ...] | None, num_classes: int) -> tuple[str, ...] | None:
    """Return one name for each class: those of `labels`, else the model's own; None where there are neither."""
    if isinstance(labels, str | os.PathLike):
        return read_labels(Path(labels), num_classes)
    names = own if labels is None else tuple(labels)
    check_labels(names, num_classes)
    return names
