"""What a cell of a study does: a run, or a chain of two runs, and its figures."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vitrail.base.ranks import Ranks
from vitrail.base.settings import to_dict
from vitrail.model.build import build
from vitrail.runs.draft import Facts
from vitrail.studies.plan import Cell
from vitrail.studies.study import Study, Variant
from vitrail.training.signals import StopSignal
from vitrail.verbs.fewshot import fewshot
from vitrail.verbs.finetune import FinetuneRequest, conduct_finetuning
from vitrail.verbs.pretrain import PretrainRequest
from vitrail.verbs.settle import conduct_training
from vitrail.verbs.study_speed import speed_figures
from vitrail.verbs.train import TrainRequest
from vitrail.verbs.trained import TrainedRun

Figures = dict[str, float]
SHOTS, DRAWS = 5, 3
EVALUATIONS = 10
"""Evaluations of a run that stops early."""
SPEED_SECONDS = 1.0
"""How long the speed of a trained model is measured."""


@dataclass(frozen=True, kw_only=True)
class Bench:
    """Everything that cells share."""

    study: Study
    data: tuple[str, ...]
    facts: Facts
    steps: int
    seconds: float = SPEED_SECONDS
    """Of "speed": how long each cell may take."""
    same_data: bool = False
    """Whether the files of the data may have other times than when the study was begun."""
    ranks: Ranks
    stop: StopSignal

    def carry_out(self, cell: Cell) -> Figures:
        """Do the work of a cell; every rank calls it."""
        if self.study.task == "speed":
            config = cell.variant.model
            assert config is not None  # noqa: S101 - a study of this task has one
            return speed_figures(build(config, seed=0, device=self.ranks.device), seconds=self.seconds)
        tasks: dict[str, Callable[[Cell], tuple[TrainedRun, Figures]]] = {
            "train": self.train,
            "enlarge": self.enlarge,
            "transfer": self.transfer,
            "pretrain": self.pretrain,
        }
        run, figures = tasks[self.study.task](cell)
        if "fewshot" in self.study.measures:
            result = fewshot(run.model_file, self.data[-1], shots=[SHOTS], seeds=DRAWS, cache=False)
            figures["fewshot"] = result.scores[0].mean if result.scores else float("nan")
        if {"images_per_second", "largest_batch"} & set(self.study.measures):
            figures |= speed_figures(run.model.to(self.ranks.device), seconds=self.seconds)
        return figures

    def request(self, cell: Cell, *, steps: int, out: Path, number: int = 0, side: int | None = None) -> TrainRequest:
        """Return the request of a run that begins with random weights, at the variant's own size or at another."""
        variant = cell.variant
        size = {} if side is None else {name: [side, side] for name in ("model.image_size", "preprocessing.image_size")}
        return TrainRequest(
            data=self.data[number],
            steps=steps,
            seed=cell.seed,
            fraction=variant.fraction,
            out=out,
            same_data=self.same_data,
            evaluate_every=max(steps // evaluations(variant), 1),
            settings={**settings_of(variant), **size},
        )

    def pretraining(self, cell: Cell, *, steps: int, out: Path) -> PretrainRequest:
        """Return the request of a run without labels."""
        return PretrainRequest(
            data=self.data[0],
            steps=steps,
            seed=cell.seed,
            objective="masked-patch",
            probe="none",
            out=out,
            same_data=self.same_data,
            evaluate_every=steps,
            settings=settings_of(cell.variant),
        )

    def train(self, cell: Cell) -> tuple[TrainedRun, Figures]:
        """Train a classifier, and fine-tune it on all of the last data set where the study has that figure."""
        steps = self._first(cell) if self.study.chained else self.steps
        run = self._trained(self.request(cell, steps=steps, out=cell.folder / "run"))
        figures = _figures(run)
        if "finetuned" in self.study.measures:
            tuned = self._tuned(cell, run, self.data[-1], out=cell.folder / "tuned")
            figures["finetuned"] = _figures(tuned)["accuracy"]
        return run, figures

    def enlarge(self, cell: Cell) -> tuple[TrainedRun, Figures]:
        """Train on images of one size, then fine-tune on those of another."""
        before, after = cell.variant.image_sizes
        first = self.request(cell, steps=self._first(cell), out=cell.folder / "first", side=before)
        return self._chained(cell, self._trained(first), self.data[0], image_size=after)

    def transfer(self, cell: Cell) -> tuple[TrainedRun, Figures]:
        """Train on one data set and fine-tune on another; without a source, train on the second for all steps."""
        variant = cell.variant
        if variant.source is None:
            run = self._trained(self.request(cell, steps=self.steps, out=cell.folder / "run", number=variant.target))
            return run, _figures(run)
        first = self.request(cell, steps=self._first(cell), out=cell.folder / "first", number=variant.source)
        return self._chained(cell, self._trained(first), self.data[variant.target])

    def pretrain(self, cell: Cell) -> tuple[TrainedRun, Figures]:
        """Pre-train without labels, then fine-tune; a variant with classes is only trained, for all steps."""
        if len(self.study.shares(cell.variant)) == 1:
            run = self._trained(self.request(cell, steps=self.steps, out=cell.folder / "run"))
            return run, _figures(run)
        first = self.pretraining(cell, steps=self._first(cell), out=cell.folder / "first")
        return self._chained(cell, self._trained(first), self.data[0])

    def _first(self, cell: Cell) -> int:
        """Return the steps of the first run of a chain."""
        return max(int(self.steps * cell.variant.first), 1)

    def _trained(self, request: TrainRequest | PretrainRequest) -> TrainedRun:
        return conduct_training(request, self.ranks, self.stop, quiet=True, report=False)

    def _chained(
        self, cell: Cell, first: TrainedRun, data: str, *, image_size: int | None = None
    ) -> tuple[TrainedRun, Figures]:
        """Fine-tune the model of a first run; the cost is that of both."""
        tuned = self._tuned(cell, first, data, out=cell.folder / "run", image_size=image_size)
        figures, before = _figures(tuned), first.result.cost
        for name in ("exaflops", "seconds"):
            figures[name] = figures.get(name, 0.0) + (getattr(before, name) or 0.0)
        return tuned, figures

    def _tuned(
        self, cell: Cell, first: TrainedRun, data: str, *, out: Path, image_size: int | None = None
    ) -> TrainedRun:
        """Fine-tune a model for half of the steps, by the rule of `vitrail finetune`, at its middle rate."""
        request = FinetuneRequest(
            data=data,
            start=first.model_file,
            steps=max(self.steps // 2, 1),
            seed=cell.seed,
            quick=True,
            image_size=image_size,
            out=out,
            same_data=self.same_data,
            evaluate_every=self.steps,
        )
        return conduct_finetuning(request, self.ranks, self.stop, quiet=True)


def settings_of(variant: Variant) -> dict[str, Any]:
    """Return the settings of a variant by path, its model among them."""
    model = {} if variant.model is None else {"model": to_dict(variant.model)}
    return {**model, **variant.settings}


def evaluations(variant: Variant) -> int:
    """Return how often a run of a variant is evaluated."""
    return EVALUATIONS if "patience" in variant.settings else 1


def _figures(run: TrainedRun) -> Figures:
    result = run.result
    measured = {name: value for name, value in result.cost.as_dict().items() if name in ("seconds", "exaflops")}
    return {
        **dict(result.figures),
        **{name: float(value) for name, value in measured.items()},
        "steps": float(result.steps),
        "gmacs": result.cost.gmacs_per_image,
        "parameters": float(result.cost.parameters),
    }
