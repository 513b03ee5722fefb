"""A survey as plain values: what `vitrail data` prints, and writes as JSON."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

import numpy as np
from jaxtyping import Int

from vitrail.data.dataset import UNLABELLED, Dataset
from vitrail.data.survey.leaks import Findings, Twin
from vitrail.data.survey.scan import Survey

Counts = Int[np.ndarray, "class"]


def summarise(survey: Survey, findings: Findings) -> dict[str, Any]:
    """Return everything that a survey and its findings tell, as values that JSON can hold."""
    datasets = list(survey.splits.values())
    return {
        "data": survey.where,
        "images": len(survey.part),
        "classes": list(survey.labels),
        "channels": datasets[0].channels,
        "splits": {name: _split(survey, part, datasets[part]) for part, name in enumerate(survey.splits)},
        "formats": _counted(survey, 0),
        "modes": _counted(survey, 1),
        "width": spread(survey.widths[survey.readable]),
        "height": spread(survey.heights[survey.readable]),
        "aspect": spread(survey.widths[survey.readable] / np.maximum(survey.heights[survey.readable], 1)),
        "bytes": int(survey.bytes.sum()),
        "notes": list(dict.fromkeys(note for dataset in datasets for note in dataset.notes)),
        "skipped": _once(dataset.skipped for dataset in datasets),
        "ignored": _once(dataset.ignored for dataset in datasets),
        "unreadable": [_image(survey, row) | {"reason": error} for row, error in survey.errors.items()],
        "leaks": [_pair(survey, twin) for twin in findings.leaks],
        "exact": [[_image(survey, row) for row in rows] for rows in findings.exact],
        "near": [_pair(survey, twin) for twin in findings.near],
        "conflicts": [[_image(survey, row) for row in rows] for rows in findings.conflicts],
    }


def spread(values: np.ndarray) -> dict[str, float] | None:
    """Return the smallest, the middle and the largest value, or None without any."""
    if not len(values):
        return None
    found = {"min": values.min(), "median": np.median(values), "max": values.max()}
    return {name: round(float(value), 4) for name, value in found.items()}


def imbalance(counts: Counts) -> dict[str, float] | None:
    """Return how unequal the classes that occur are, or None without any.

    `ratio` is the largest class over the smallest; `effective` is the number of equal classes that would be as hard to
    guess, e to the power of the entropy of the class frequencies.
    """
    present = counts[counts > 0]
    if not len(present):
        return None
    share = present / present.sum()
    effective = math.exp(-float((share * np.log(share)).sum()))
    return {"ratio": round(float(present.max() / present.min()), 4), "effective": round(effective, 4)}


def _once(lists: Iterable[Sequence[tuple[str, str]]]) -> list[dict[str, str]]:
    """List what the splits of one source have in common once."""
    found = dict.fromkeys(chain.from_iterable(lists))
    return [{"name": name, "reason": reason} for name, reason in found]


def _split(survey: Survey, part: int, dataset: Dataset) -> dict[str, Any]:
    here = survey.part == part
    counts = dataset.counts
    return {
        "images": len(dataset),
        "unreadable": int((here & ~survey.readable).sum()),
        "unlabelled": int((dataset.targets == UNLABELLED).sum()),
        "counts": counts.tolist(),
        "missing": [dataset.labels[at] for at in np.flatnonzero(counts == 0)],
        "imbalance": imbalance(counts),
    }


def _counted(survey: Survey, which: int) -> dict[str, int]:
    """Count formats or modes, the most frequent first."""
    counts: Counter[str] = Counter()
    for kind, number in enumerate(np.bincount(survey.kind[survey.readable], minlength=len(survey.kinds))):
        counts[survey.kinds[kind][which]] += int(number)
    return dict(counts.most_common())


def _image(survey: Survey, row: int) -> dict[str, Any]:
    return {"split": survey.split(row), "name": survey.name(row), "class": survey.label(row)}


def _pair(survey: Survey, twin: Twin) -> dict[str, Any]:
    return {
        "kind": twin.kind,
        "similarity": twin.similarity,
        "image": _image(survey, twin.row),
        "other": _image(survey, twin.other),
    }
