"""Every model under every stress: each image is read once, and every model sees the same pixels."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int

from vitrail.analysis.attacks import pgd, square_bounds
from vitrail.base.errors import ConfigError, ImageError, InputError
from vitrail.base.notes import Note
from vitrail.base.progress import Progress
from vitrail.base.shapes import Images, Logits, Pixels
from vitrail.data.dataset import Dataset
from vitrail.evaluation.finite import refuse_bad_numbers
from vitrail.runtime.engine import TorchEngine
from vitrail.studies.stress.changes import Level
from vitrail.studies.stress.saliency import salient_orders
from vitrail.studies.stress.stage import Contestant, Stage, Subject
from vitrail.studies.stress.stress_test import StressTest


class Column(NamedTuple):
    """One strength of one test; None and 0 for clean images."""

    test: StressTest | None
    level: Level


@dataclass(frozen=True, kw_only=True, eq=False)
class Answers:
    """What every model answered, in columns: clean images first, then every level of every test."""

    columns: tuple[Column, ...]
    targets: Int[np.ndarray, "model image"]
    """The scored class of each image, by the numbers of each model."""
    predicted: Int[np.ndarray, "model column image"]
    confidence: Float[np.ndarray, "model column image"]
    """The probability of the answer; NaN where an image could not be read, or a model not be tested so."""

    @property
    def counted(self) -> Bool[np.ndarray, "image"]:
        """The images that could be read."""
        return ~np.isnan(self.confidence[0, 0])

    def measured(self, model: int, column: int) -> bool:
        """Return whether a model could be tested so."""
        return not np.isnan(self.confidence[model, column, self.counted]).any()

    def right(self, model: int, column: int) -> Bool[np.ndarray, "counted"]:
        """Return which images that could be read a model answered rightly."""
        return (self.predicted[model, column] == self.targets[model])[self.counted]


@dataclass(kw_only=True, eq=False)
class Measuring:
    """The work, batch by batch."""

    dataset: Dataset
    contestants: Sequence[Contestant]
    targets: Int[np.ndarray, "model image"]
    tests: Sequence[StressTest]
    stage: Stage
    batch: int
    steps: int
    """Steps of an attack."""
    note: Note
    failures: list[tuple[str, str]] = field(default_factory=list)
    refused: dict[tuple[int, str], str] = field(default_factory=dict)
    """Why a model could not be tested so, by its number and the name of the test; the first reason of each."""

    def answers(self, progress: Progress) -> Answers:
        """Ask every model about every image under every stress."""
        columns = (Column(None, 0), *(Column(test, level) for test in self.tests for level in test.levels))
        shape = (len(self.contestants), len(columns), len(self.dataset))
        predicted, confidence = np.full(shape, -1, np.int64), np.full(shape, np.nan)
        parts = -(-len(self.dataset) // self.batch)
        for indices, number, logits in progress(self._passes(columns), total=parts * len(columns), title="stressing"):
            for model, scores in enumerate(logits):
                if scores is not None and len(indices):
                    chances = scores.softmax(dim=1).max(dim=1)
                    predicted[model, number, indices] = scores.argmax(dim=1).numpy()
                    confidence[model, number, indices] = chances.values.double().nan_to_num(torch.inf).numpy()
        if np.isnan(confidence[0, 0]).all():
            raise InputError(f"no image of {self.dataset.where} could be read: {self.failures[0][1]}")
        refuse_bad_numbers("scores", self.dataset, np.isinf(confidence).any(axis=(0, 1)))
        return Answers(columns=columns, targets=self.targets, predicted=predicted, confidence=confidence)

    def _passes(
        self, columns: Sequence[Column]
    ) -> Iterator[tuple[Int[np.ndarray, "chosen"], int, list[Logits | None]]]:
        """Yield the images of a batch, a column, and the answers of every model."""
        for start in range(0, len(self.dataset), self.batch):
            indices, images = self._read(range(start, min(start + self.batch, len(self.dataset))))
            subjects = self.subjects(indices, images) if images else []
            for number, (test, level) in enumerate(columns):
                yield indices, number, self._column(subjects, images, indices, test, level) if images else []

    def _read(self, places: range) -> tuple[Int[np.ndarray, "chosen"], list[Pixels]]:
        """Read some images, and report those that cannot be."""
        indices, images = [], []
        for index in places:
            try:
                image = self.dataset.image(index)
                self.stage.bring(image)
            except ImageError as error:
                self.failures.append((self.dataset.name(index), str(error)))
                self.note(f"left out: {error}")
                continue
            indices.append(index)
            images.append(image)
        return np.array(indices, np.int64), images

    def subjects(self, indices: Sequence[int] | Int[np.ndarray, "chosen"], images: Sequence[Pixels]) -> list[Subject]:
        """Bring images onto the stage, with their salient cells where a test needs them."""
        pixels = [self.stage.bring(image) for image in images]
        rows = [int(self.dataset.rows[index]) for index in indices]
        orders: Sequence[torch.Tensor | None] = [None] * len(rows)
        if any(test.salient for test in self.tests):
            orders = salient_orders(self.contestants, self.stage, torch.stack(pixels), rows)
        return [
            Subject(stage=self.stage, pixels=image, row=row, order=order)
            for image, row, order in zip(pixels, rows, orders, strict=True)
        ]

    def _column(
        self,
        subjects: Sequence[Subject],
        images: list[Pixels],
        indices: Int[np.ndarray, "chosen"],
        test: StressTest | None,
        level: Level,
    ) -> list[Logits | None]:
        if test is None or test.apply is not None:
            pixels = torch.stack([stressed(subject, test, level) for subject in subjects])
            return [contestant.scores(pixels) for contestant in self.contestants]
        logits: list[Logits | None] = []
        for model, contestant in enumerate(self.contestants):
            try:
                logits.append(self._own(model, contestant, subjects, images, indices, test, level))
            except (ConfigError, InputError) as error:
                self._refuse(model, test, level, str(error))
                logits.append(None)
        return logits

    def _own(
        self,
        model: int,
        contestant: Contestant,
        subjects: Sequence[Subject],
        images: list[Pixels],
        indices: Int[np.ndarray, "chosen"],
        test: StressTest,
        level: Level,
    ) -> Logits:
        """Return the scores under a stress that depends on the model."""
        if not isinstance(contestant.engine, TorchEngine):
            raise ConfigError("only models of ours have gradients and take other sizes.")
        if test.kind == "resolution":
            return contestant.scores_at(images, contestant.size_at(level))
        with torch.no_grad():
            values = self.attacked(contestant, subjects, self.targets[model, indices], test, level)
            return contestant.slope_scores(values).float().cpu()

    def attacked(
        self,
        contestant: Contestant,
        subjects: Sequence[Subject],
        targets: Int[np.ndarray, "chosen"],
        test: StressTest,
        level: Level,
    ) -> Images:
        """Return images that were fitted to fool a model, from draws that are the same for all models."""
        device = contestant.engine.device
        pixels = contestant.seen(torch.stack([subject.pixels for subject in subjects])).to(device).float()
        shape = tuple(pixels.shape[1:])
        start = np.stack([2 * subject.draws(test.name).uniform("start", *shape) - 1 for subject in subjects])
        if test.name == "pgd":
            bounds = torch.full((len(subjects), 1, 1, 1), float(level), device=device)
        else:
            side = max(round((float(level) * shape[1] * shape[2]) ** 0.5), 1)
            places = [subject.draws(test.name).uniform("corner", 2) for subject in subjects]
            room = (shape[1] - side + 1, shape[2] - side + 1)
            corners = [(int(down * room[0]), int(right * room[1])) for down, right in places]
            bounds = square_bounds(pixels, corners, side)
        return pgd(
            contestant.slope_scores,
            pixels,
            torch.from_numpy(targets).to(device),
            bounds=bounds,
            start=torch.from_numpy(start).float().to(device),
            steps=self.steps,
        )

    def _refuse(self, model: int, test: StressTest, level: Level, reason: str) -> None:
        if (model, test.name) not in self.refused:
            where = f"{self.contestants[model].name} is left out of {test.name} at {test.written(level)}"
            self.refused[model, test.name] = f"{where}: {reason}"
            self.note(self.refused[model, test.name])


def stressed(subject: Subject, test: StressTest | None, level: Level) -> Pixels:
    """Return the pixels of one image under a stress that is the same for all models."""
    return subject.pixels if test is None or test.apply is None else test.apply(subject, level)
