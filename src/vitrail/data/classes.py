"""Which classes a data set has: those of training, once; every other split is matched by name, never re-numbered."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Int

from vitrail.base.errors import InputError
from vitrail.data.dataset import UNLABELLED
from vitrail.data.sources.pile import Pile, class_name

UNKNOWN = -2
"""The class of an image whose label is none of the classes."""

_SHOWN = 8

Codes = Int[np.ndarray, "image"]
Mask = Bool[np.ndarray, "image"]


def decide(pile: Pile, in_training: Mask | None) -> tuple[str, ...]:
    """Return the classes of a pile: those that it lists, or those that its training images have."""
    if pile.fixed:
        return pile.names
    targets = pile.targets if in_training is None else pile.targets[in_training]
    used = np.flatnonzero(np.bincount(targets[targets >= 0], minlength=1))
    if pile.numeric:  # numbers are indices: a gap is a class without images
        return pile.names[: int(used[-1]) + 1] if len(used) else ()
    return tuple(pile.names[code] for code in used)


def match(pile: Pile, labels: Sequence[str], *, explicit: bool) -> tuple[Codes, list[str]]:
    """Turn the pile's classes into places in `labels`, by name; return the classes of all images, and notes.

    Whole numbers that are not among the names are places themselves, when the labels are `explicit`.
    """
    if tuple(labels) == pile.names:  # whatever the names are: ImageNet has two classes called crane
        return np.asarray(pile.targets, np.int32), []
    place = {class_name(name): at for at, name in enumerate(labels)}
    notes = []
    table = np.array([*(place.get(name, UNKNOWN) for name in pile.names), UNLABELLED], np.int32)
    if explicit and pile.numeric and not (set(pile.names) & place.keys()):
        table = np.array(
            [*(at if at < len(labels) else UNKNOWN for at in range(len(pile.names))), UNLABELLED], np.int32
        )
        notes.append("the labels are whole numbers and were taken as places in the list of classes.")
    return table[pile.targets], notes


def refuse_unknown(pile: Pile, targets: Codes, codes: Codes, part: str, labels: Sequence[str]) -> None:
    """Refuse images whose class is none of `labels`, with the names of the classes."""
    unknown = codes[targets == UNKNOWN]
    if not len(unknown):
        return
    surplus = np.unique(unknown)
    raise InputError(
        f"{part} has {len(unknown)} images of {len(surplus)} classes that are not among the {len(labels)} known ones: "
        f"{few([pile.names[code] for code in surplus])}. The known ones are {few(list(labels))}. Rename them, or take "
        "those images out."
    )


def describe(targets: Codes, labels: Sequence[str], part: str) -> list[str]:
    """Return notes for the user about the classes of a split."""
    unlabelled = int((targets == UNLABELLED).sum())
    if unlabelled == len(targets):
        return [f"{part} has no labels."]
    notes = [f"{unlabelled} of {len(targets)} images of {part} have no label."] if unlabelled else []
    counts = np.bincount(targets[targets >= 0], minlength=len(labels))
    lacking = [labels[int(at)] for at in np.flatnonzero(counts == 0)]
    if lacking:
        notes.append(f"{part} has no images of {len(lacking)} of {len(labels)} classes: {few(lacking)}.")
    if len(labels) == 1:
        notes.append(f"{part} has one class only, {labels[0]}; a classifier needs two.")
    return notes


def few(names: Sequence[str]) -> str:
    """Write the first of some names, and how many more there are."""
    return ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
