"""What a cell of a study does: a run, or a chain of runs, and its figures."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

from vitrail.base.ranks import Ranks
from vitrail.base.settings import to_dict
from vitrail.model.build import build
from vitrail.model.cost import cost
from vitrail.runs.choose import choose_side
from vitrail.runs.draft import Facts
from vitrail.runs.speed import free_memory
from vitrail.studies.plan import Cell
from vitrail.studies.study import Study, Variant
from vitrail.training.signals import StopSignal
from vitrail.verbs.fewshot import fewshot
from vitrail.verbs.finetune import FinetuneRequest, conduct_finetuning
from vitrail.verbs.pretrain import PretrainRequest
from vitrail.verbs.settle import conduct_training
from vitrail.verbs.train import TrainRequest
from vitrail.verbs.trained import TrainedRun

Figures = dict[str, float]
SHOTS = 5
TRANSFER_RATE = 0.03
"""The rate of fine-tuning in a study: the middle one of the rule."""
BATCHES = (1, 8, 32)
"""Images at once, of which the fastest counts."""


@dataclass(frozen=True, kw_only=True)
class Bench:
    """Everything that cells share."""

    study: Study
    data: tuple[str, ...]
    facts: Facts
    steps: int
    seconds: float
    """Of "speed": how long each cell may take."""
    ranks: Ranks
    stop: StopSignal

    def carry_out(self, cell: Cell) -> Figures:
        """Do the work of a cell; every rank calls it."""
        tasks: dict[str, Callable[[Cell], Figures]] = {
            "train": self.train,
            "enlarge": self.enlarge,
            "transfer": self.transfer,
            "pretrain": self.pretrain,
            "speed": self.speed,
        }
        return tasks[self.study.task](cell)

    def request(self, cell: Cell, *, steps: int, out: Path, number: int = 0) -> TrainRequest:
        """Return the request of a run that begins with random weights."""
        variant = cell.variant
        return TrainRequest(
            data=self.data[number],
            steps=steps,
            seed=cell.seed,
            fraction=variant.fraction,
            out=out,
            evaluate_every=max(steps // 10, 1) if "patience" in variant.settings else steps,
            settings=settings_of(variant),
        )

    def train(self, cell: Cell) -> Figures:
        """Train a classifier."""
        run = self._trained(self.request(cell, steps=self.steps, out=cell.folder / "run"))
        figures = _figures(run)
        if "fewshot" in self.study.measures:
            result = fewshot(run.model_file, self.data[0], shots=[SHOTS], seeds=1, cache=False)
            figures["fewshot"] = result.scores[0].mean if result.scores else float("nan")
        return figures

    def enlarge(self, cell: Cell) -> Figures:
        """Train at the variant's own size for half of the steps, then at the full one for the rest."""
        side, full = cell.variant.image_size or 0, choose_side(self.facts)
        model = cell.variant.model
        assert model is not None  # noqa: S101 - studies of this task have one
        settings = {"model.image_size": [side, side], "preprocessing.image_size": [side, side]}
        first = TrainRequest(
            data=self.data[0],
            steps=self.steps // 2,
            seed=cell.seed,
            out=cell.folder / "first",
            evaluate_every=self.steps // 2,
            settings={**settings_of(cell.variant), **settings},
        )
        return self._tuned(cell, self._trained(first), self.data[0], image_size=full)

    def transfer(self, cell: Cell) -> Figures:
        """Train on one data set and fine-tune on another; without a source, train on the second for all steps."""
        variant = cell.variant
        if variant.source is None:
            run = self._trained(self.request(cell, steps=self.steps, out=cell.folder / "run", number=variant.target))
            return _figures(run)
        first = self.request(cell, steps=self.steps // 2, out=cell.folder / "first", number=variant.source)
        return self._tuned(cell, self._trained(first), self.data[variant.target])

    def pretrain(self, cell: Cell) -> Figures:
        """Pre-train without labels for half of the steps, then fine-tune; a variant with classes is only trained."""
        variant = cell.variant
        if variant.model is not None and variant.model.num_classes:
            return self.train(cell)
        request = PretrainRequest(
            data=self.data[0],
            steps=self.steps // 2,
            seed=cell.seed,
            objective="masked-patch",
            probe="none",
            out=cell.folder / "first",
            evaluate_every=self.steps // 2,
            settings=settings_of(variant),
        )
        first = conduct_training(request, self.ranks, self.stop, quiet=True, report=False)
        return self._tuned(cell, first, self.data[0])

    def speed(self, cell: Cell) -> Figures:
        """Time forward passes at several batches, and work out the largest batch whose training fits into memory."""
        config = cell.variant.model
        assert config is not None  # noqa: S101 - studies of this task have one
        model, best = build(config, seed=0, device=self.ranks.device).eval(), 0.0
        for batch in BATCHES:
            images = torch.zeros(batch, config.channels, *config.image_size, device=self.ranks.device)
            with torch.inference_mode():
                model(images)
                began, passes = time.perf_counter(), 0
                while passes == 0 or time.perf_counter() - began < self.seconds / len(BATCHES):
                    model(images)
                    passes += 1
            best = max(best, passes * batch / (time.perf_counter() - began))
        need = cost(config)
        room = free_memory() - 16 * need.parameters  # weights, gradients and two moments of Adam
        return {
            "images_per_second": best,
            "largest_batch": float(max(int(room / (4 * need.activations)), 0)),
            "gmacs": need.macs / 1e9,
            "parameters": float(need.parameters),
        }

    def _trained(self, request: TrainRequest) -> TrainedRun:
        return conduct_training(request, self.ranks, self.stop, quiet=True, report=False)

    def _tuned(self, cell: Cell, first: TrainedRun, data: str, *, image_size: int | None = None) -> Figures:
        request = FinetuneRequest(
            data=data,
            start=first.model_file,
            steps=max(self.steps // 2, 1),
            seed=cell.seed,
            learning_rate=TRANSFER_RATE,
            image_size=image_size,
            out=cell.folder / "run",
            evaluate_every=self.steps,
        )
        tuned = conduct_finetuning(request, self.ranks, self.stop, quiet=True)
        figures, before = _figures(tuned), first.result.cost
        for name in ("exaflops", "seconds"):
            figures[name] = figures.get(name, 0.0) + (getattr(before, name) or 0.0)
        return figures


def settings_of(variant: Variant) -> dict[str, object]:
    """Return the settings of a variant by path, its model among them."""
    model = {} if variant.model is None else {"model": to_dict(variant.model)}
    return {**model, **variant.settings}


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
