"""Curves and figures of models under stress, each with its interval over images."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from vitrail.base.scores import interval
from vitrail.evaluation.bootstrap import DrawCounts, Interval, bootstrap
from vitrail.studies.stress.changes import Level
from vitrail.studies.stress.measure import Answers
from vitrail.studies.stress.stress_test import StressTest


@dataclass(frozen=True, kw_only=True)
class Point:
    """The accuracy of one model at one level of one test."""

    level: Level
    accuracy: Interval


@dataclass(frozen=True, kw_only=True)
class Summary:
    """The figures of one model; a test that it could not take is missing."""

    clean: Interval
    """Accuracy on clean images."""
    means: Mapping[str, Interval]
    """By test, the mean accuracy over its levels."""
    changes: Mapping[str, Interval]
    """By test, that figure less the first model's, on the same images; empty for the first."""
    mean_error: Interval | None
    """The mean error over all corruptions and severities."""
    corruption_error: Interval | None
    """The mean over corruptions of the model's summed errors divided by the first model's (mCE); NaN where the first
    makes none."""
    severities: tuple[Point, ...] = ()
    """The mean accuracy over all corruptions at each severity."""


def curve(answers: Answers, model: int, test: StressTest) -> tuple[Point, ...]:
    """Return the accuracy at each level with Wilson's interval; levels that could not be measured are missing."""
    columns = [(number, level) for number, (owner, level) in enumerate(answers.columns) if owner is test]
    return tuple(
        Point(level=level, accuracy=accuracy(answers, model, number))
        for number, level in columns
        if answers.measured(model, number)
    )


def accuracy(answers: Answers, model: int, column: int) -> Interval:
    """Return the share of right answers in one column."""
    right = answers.right(model, column)
    low, high = interval(int(right.sum()), len(right))
    return Interval(value=float(right.mean()), low=low, high=high)


def summarise(
    answers: Answers, tests: Sequence[StressTest], *, resamples: int = 1000, seed: int = 0
) -> tuple[Summary, ...]:
    """Return the figures of every model; intervals of means and of differences are of the bootstrap over images."""
    models = len(answers.targets)
    images = int(answers.counted.sum())
    right = np.stack(
        [
            np.stack([answers.right(model, column) for column in range(len(answers.columns))]).astype(np.float64)
            for model in range(models)
        ]
    )
    columns = {
        test.name: [number for number, (owner, _) in enumerate(answers.columns) if owner is test] for test in tests
    }
    taken = [
        [name for name, own in columns.items() if all(answers.measured(model, number) for number in own)]
        for model in range(models)
    ]
    corrupted = [test.name for test in tests if test.group == "corruptions"]
    levels = next((test.levels for test in tests if test.group == "corruptions"), ())

    def figures(draws: DrawCounts) -> dict[str, float]:
        shares = right @ (draws / draws.sum())
        values: dict[str, float] = {}
        for model in range(models):
            means = {name: float(shares[model, columns[name]].mean()) for name in taken[model]}
            values |= {f"{model} mean {name}": mean for name, mean in means.items()}
            values |= {
                f"{model} change {name}": mean - float(shares[0, columns[name]].mean())
                for name, mean in means.items()
                if model and name in taken[0]
            }
            if corrupted:
                errors = 1 - np.stack([shares[:, columns[name]] for name in corrupted])
                values[f"{model} error"] = float(errors[:, model].mean())
                values[f"{model} relative"] = relative_error(errors[:, model], errors[:, 0])
                by_severity = enumerate(1 - errors[:, model].mean(axis=0))
                values |= {f"{model} severity {place}": float(share) for place, share in by_severity}
        return values

    drawn = bootstrap(figures, images, resamples=resamples, seed=seed)
    if images == 1:  # every resample is that image, which looks certain and is not
        drawn = {name: replace(figure, low=math.nan, high=math.nan) for name, figure in drawn.items()}
    return tuple(
        Summary(
            clean=accuracy(answers, model, 0),
            means=_named(drawn, f"{model} mean "),
            changes=_named(drawn, f"{model} change "),
            mean_error=drawn.get(f"{model} error"),
            corruption_error=drawn.get(f"{model} relative"),
            severities=tuple(
                Point(level=level, accuracy=drawn[f"{model} severity {place}"]) for place, level in enumerate(levels)
            ),
        )
        for model in range(models)
    )


def relative_error(
    errors: Float[np.ndarray, "corruption severity"], baseline: Float[np.ndarray, "corruption severity"]
) -> float:
    """Return the mean corruption error: CE = sum of errors / sum of the baseline's, averaged over corruptions."""
    sums = baseline.sum(axis=1)
    return float((errors.sum(axis=1) / sums).mean()) if (sums > 0).all() else float("nan")


def _named(drawn: Mapping[str, Interval], prefix: str) -> dict[str, Interval]:
    return {name.removeprefix(prefix): figure for name, figure in drawn.items() if name.startswith(prefix)}
