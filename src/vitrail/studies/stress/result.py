"""What `vitrail.stress` returns: curves, figures, claims and the worst images, as tables, JSON and rows."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vitrail.base.table import Table, Tabular
from vitrail.data.stress.published import NAMES
from vitrail.evaluation.bootstrap import Interval
from vitrail.report.markup import percent
from vitrail.studies.stress.claims import CLAIMS, Claim
from vitrail.studies.stress.figures import Point, Summary, curve
from vitrail.studies.stress.measure import Answers
from vitrail.studies.stress.stress_test import StressTest
from vitrail.studies.stress.worst import Worst

CSV_COLUMNS = ("model", "group", "test", "level", "images", "accuracy", "low", "high")
DIFFERS = "* differs from {first} beyond chance: the 95% interval of the difference, on the same images, excludes 0."


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class StressResult(Tabular):
    """How models hold up: accuracy at each level of each test, with intervals."""

    models: tuple[str, ...]
    """What the models are called; the first is the baseline of the others."""
    data: str
    """The data, with its split."""
    images: tuple[str, ...]
    """The names of the images that were counted."""
    tests: tuple[StressTest, ...]
    answers: Answers
    summaries: tuple[Summary, ...]
    """The figures of each model."""
    worst: tuple[Worst, ...]
    """For each test, the image that breaks first."""
    settings: Mapping[str, Any]
    """What decided the stress: seed, steps, the published parameters, and so on."""
    failures: tuple[tuple[str, str], ...] = ()
    """Images that could not be read, and why."""
    notes: tuple[str, ...] = ()
    """What the user should know, a sentence each."""
    files: Mapping[str, Path] = field(default_factory=dict)
    """What was written: `folder`, `page`."""

    def curve(self, model: str, test: str) -> tuple[Point, ...]:
        """Return the accuracy of a model at each level of a test, with Wilson's interval."""
        owner = next(own for own in self.tests if own.name == test)
        return curve(self.answers, self.models.index(model), owner)

    def mean(self, model: str, test: str) -> Interval | None:
        """Return the mean accuracy of a model over the levels of a test; None where it could not take it."""
        return self.summaries[self.models.index(model)].means.get(test)

    def tables(self, *, wide: bool = False) -> list[Table]:
        """Return the tests, the corruptions in sum, and what was published, which a `wide` table has in its rows."""
        tables = (self._tests(), self._corruptions(), self._claims(beside=wide))
        return [table for table in tables if table is not None]

    def _tests(self) -> Table:
        rows = [("clean images", *(percent(summary.clean.value) for summary in self.summaries))]
        rows += [(test.name, *(_marked(summary, test.name) for summary in self.summaries)) for test in self.tests]
        several = (DIFFERS.format(first=self.models[0]),) if len(self.models) > 1 else ()
        return Table(
            title=f"Mean accuracy under stress, {len(self.images):,} images of {self.data}",
            columns=("stress", *self.models),
            rows=tuple(rows),
            notes=(*several, *self.notes),
        )

    def _corruptions(self) -> Table | None:
        names = {"mean error": "mean_error"}
        if len(self.models) > 1:
            names[f"mean corruption error, {self.models[0]} = 100%"] = "corruption_error"
        rows = []
        for title, name in names.items():
            figures: list[Interval | None] = [getattr(summary, name) for summary in self.summaries]
            if any(figure is not None for figure in figures):
                rows.append((title, *(percent(math.nan if figure is None else figure.value) for figure in figures)))
                rows.append(("95% interval", *(_span(figure) for figure in figures)))
        count = sum(test.group == "corruptions" for test in self.tests)
        title = f"Common corruptions, {count} of 15, parameters of {self.settings['parameters']}"
        return Table(title=title, columns=("", *self.models), rows=tuple(rows)) if rows else None

    def _claims(self, *, beside: bool) -> Table | None:
        """Return what was published and what was measured: beside each other, or below each other in few columns."""
        claims = list(self.claims())
        if not claims:
            return None
        sources = list(dict.fromkeys(claim.source for claim, _, _ in claims))
        published = [f"{claim.text} [{sources.index(claim.source) + 1}]" for claim, _, _ in claims]
        rows = [(at, *values) for _, at, values in claims]
        kept = "Accuracy, and in brackets the share of the accuracy on clean images that is left."
        below = () if beside else tuple(f"{row[0]}: {text}." for row, text in zip(rows, published, strict=True))
        if below:
            kept += " What was published:"
        return Table(
            title="Beside what was published of large models on ImageNet",
            columns=("measured", *self.models, *(["note"] if beside else [])),
            rows=tuple((*row, text) if beside else row for row, text in zip(rows, published, strict=True)),
            notes=(kept, *below, *(f"[{number}] {source}." for number, source in enumerate(sources, 1))),
        )

    def claims(self) -> Iterator[tuple[Claim, str, tuple[str, ...]]]:
        """Yield each claim whose test was run, what is looked at, and the accuracy of each model."""
        for claim in CLAIMS:
            tests = [test for test in self.tests if claim.test in (test.name, test.group)]
            few = claim.test == "corruptions" and len(tests) < len(NAMES)  # their mean is one over all of them
            if not tests or few or (claim.level is not None and claim.level not in tests[0].levels):
                continue
            at = claim.test if claim.level is None else f"{claim.test} {tests[0].written(claim.level)}"
            yield claim, at, tuple(self._kept(model, tests, claim) for model in range(len(self.models)))

    def _kept(self, model: int, tests: Sequence[StressTest], claim: Claim) -> str:
        points = [point for test in tests for point in curve(self.answers, model, test)]
        values = [point.accuracy.value for point in points if claim.level in (None, point.level)]
        clean = self.summaries[model].clean.value
        if not values or not clean:
            return percent(math.nan)
        mean = sum(values) / len(values)
        return f"{percent(mean)} ({percent(mean / clean, 0)})"

    def rows(self) -> Iterator[tuple[str | float, ...]]:
        """Yield a row for each model, test and level; see `CSV_COLUMNS`."""
        for number, model in enumerate(self.models):
            clean = self.summaries[number].clean
            yield model, "clean", "clean", 0, len(self.images), clean.value, clean.low, clean.high
            for test in self.tests:
                for point in curve(self.answers, number, test):
                    share = point.accuracy
                    yield (
                        model,
                        test.group,
                        test.name,
                        point.level,
                        len(self.images),
                        share.value,
                        share.low,
                        share.high,
                    )

    def to_dict(self) -> dict[str, Any]:
        """Return everything but pixels as values that JSON can hold; an answer is 1 where it is right."""
        counted = self.answers.counted
        return {
            "data": self.data,
            **{kind: str(path) for kind, path in self.files.items()},
            "settings": dict(self.settings),
            "images": list(self.images),
            "models": [self._model(number) for number in range(len(self.models))],
            "claims": [
                {"claim": claim.text, "source": claim.source, "measured": at, "accuracy": list(values)}
                for claim, at, values in self.claims()
            ],
            "worst": [
                {
                    "test": worst.test.name,
                    "level": worst.level,
                    "model": worst.model,
                    "image": worst.image,
                    "truth": worst.truth,
                    "answer": worst.answer,
                    "confidence": worst.confidence,
                }
                for worst in self.worst
            ],
            "unreadable": [{"image": name, "error": reason} for name, reason in self.failures],
            "counted": int(counted.sum()),
            "notes": list(self.notes),
        }

    def _model(self, number: int) -> dict[str, Any]:
        summary, answers = self.summaries[number], self.answers
        tests: dict[str, Any] = {}
        for test in self.tests:
            own = [at for at, column in enumerate(answers.columns) if column.test is test]
            tests[test.name] = {
                "group": test.group,
                "mean": _plain(summary.means.get(test.name)),
                "change": _plain(summary.changes.get(test.name)),
                "levels": [
                    {"level": point.level, **(_plain(point.accuracy) or {})} for point in curve(answers, number, test)
                ],
                "right": [_bits(answers, number, at) for at in own if answers.measured(number, at)],
            }
        return {
            "model": self.models[number],
            "clean": _plain(summary.clean),
            "clean_right": _bits(answers, number, 0),
            "mean_error": _plain(summary.mean_error),
            "mean_corruption_error": _plain(summary.corruption_error),
            "severities": [{"level": point.level, **(_plain(point.accuracy) or {})} for point in summary.severities],
            "tests": tests,
        }


def _marked(summary: Summary, test: str) -> str:
    """Write a mean accuracy, with a star where it differs from the first model's."""
    if test not in summary.means:
        return percent(math.nan)
    change = summary.changes.get(test)
    star = "*" if change is not None and (change.low > 0 or change.high < 0) else ""
    return f"{percent(summary.means[test].value)}{star}"


def _span(figure: Interval | None) -> str:
    if figure is None or math.isnan(figure.low):
        return percent(math.nan)
    return f"{percent(figure.low)} to {percent(figure.high)}"


def _plain(figure: Interval | None) -> dict[str, float | None] | None:
    if figure is None:
        return None
    values = {"value": figure.value, "low": figure.low, "high": figure.high}
    return {name: None if math.isnan(value) else value for name, value in values.items()}


def _bits(answers: Answers, model: int, column: int) -> str:
    return "".join("1" if right else "0" for right in answers.right(model, column).tolist())
