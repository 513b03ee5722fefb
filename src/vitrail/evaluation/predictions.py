"""Every answer of an evaluation as a line of CSV.

| column                       | what it holds                                                         |
|------------------------------|-----------------------------------------------------------------------|
| image                        | the name of the image                                                 |
| truth                        | its class; empty without one                                          |
| predicted                    | the class with the highest score                                      |
| right                        | 1 or 0; empty without a class                                         |
| real                         | with ReaL: 1 or 0; empty for images without a label in ReaL           |
| confidence                   | the probability of the predicted class                                |
| class_1, probability_1, ...  | the most likely classes, at most five, and their probabilities        |

Images that could not be read are left out.
"""

from itertools import chain
from pathlib import Path

import numpy as np

from vitrail.base.files import atomic_write
from vitrail.base.outputs import Kind
from vitrail.base.rows import read_header, write_csv
from vitrail.data.dataset import Dataset
from vitrail.evaluation.classify import Answers
from vitrail.evaluation.real import Real

FIRST = ["image", "truth", "predicted", "right"]
EVALUATED = Kind(
    name="a table of an evaluation's predictions",
    suffixes=(".csv",),
    holds=lambda path: read_header(path)[: len(FIRST)] == FIRST,
)


def write_predictions(path: Path, dataset: Dataset, answers: Answers, *, real: Real | None = None) -> None:
    """Write the file, whole or not at all; the labels of the data set are those of the answers."""
    top = answers.best.shape[1]
    ranked = [column for place in range(1, top + 1) for column in (f"class_{place}", f"probability_{place}")]
    header = [*FIRST, *(["real"] if real else []), "confidence", *ranked]
    rows = (_row(index, dataset, answers, real) for index in map(int, np.flatnonzero(answers.answered)))
    with atomic_write(path) as file:
        write_csv(file, chain([header], rows))


def _row(index: int, dataset: Dataset, answers: Answers, real: Real | None) -> list[str]:
    truth, predicted = int(answers.targets[index]), int(answers.predicted[index])
    labelled = truth >= 0
    row = [
        dataset.name(index),
        dataset.labels[truth] if labelled else "",
        dataset.labels[predicted],
        str(int(truth == predicted)) if labelled else "",
    ]
    if real is not None:
        row.append(str(int(real.right[index])) if real.counted[index] else "")
    row.append(f"{answers.confidence[index]:.6f}")
    for at, chance in zip(answers.best[index], answers.chances[index], strict=True):
        row += [dataset.labels[at], f"{chance:.6f}"]
    return row
