"""The evaluator of a classifier: its answers for the images that a run holds out."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch

from vitrail.base.errors import InputError
from vitrail.base.ranks import Ranks
from vitrail.checkpoint.files import load
from vitrail.data.budget import Budget
from vitrail.data.dataset import Dataset
from vitrail.data.loader import Batch, evaluation_batches
from vitrail.data.preprocessing import Preprocessing
from vitrail.evaluation.classify import Answers, answer
from vitrail.model.contract import Model
from vitrail.report.answers import answer_sections
from vitrail.report.section import Section
from vitrail.runs.evaluator import RunEvaluator, Scope
from vitrail.runs.mistakes import evaluation_story, surest_mistakes
from vitrail.runs.skipped import noted
from vitrail.runtime.engine import TorchEngine
from vitrail.training.endings import StoppedError
from vitrail.training.parallel import in_company
from vitrail.training.signals import Interruption, StopSignal


@dataclass(frozen=True, kw_only=True, eq=False)
class HeldOut(RunEvaluator[Answers]):
    """Accuracy and loss on held-out images."""

    name = "val"
    every: int
    dataset: Dataset
    preprocessing: Preprocessing
    batch: int
    """Images of this rank that go through the model at once."""
    workers: int
    ranks: Ranks
    allowance: Budget | None
    """How many broken images may be passed over; None ends the run at the first."""
    skipped_file: Path
    """Where this rank lists skipped images."""
    sharded: bool
    """Whether every forward pass of the model needs every rank."""
    model_file: Path | None = None
    """The model that the run saves, to explain mistakes with; None shows images only."""
    stop: StopSignal | None = None
    """What may interrupt it."""

    def evaluate(self, model: Model) -> Answers:
        """Ask the model about every image."""
        batches: Iterator[Batch] = evaluation_batches(
            self.dataset,
            self.preprocessing,
            batch=self.batch,
            rank=self.ranks.rank,
            world=self.ranks.world,
            workers=self.workers,
            skip_broken=self.allowance,
        )
        batches = noted(batches, self.dataset, self.skipped_file)
        if self.stop is not None:
            batches = self.stop.awaited(batches)
        if self.sharded:
            forwards = -(-len(self.dataset) // (self.ranks.world * self.batch))
            size = (1, self.preprocessing.channels, *self.preprocessing.image_size)
            batches = in_company(batches, model, forwards, torch.zeros(size, device=self.ranks.device))
        engine = TorchEngine(model, self.preprocessing)
        try:
            answers = answer(engine.logits, batches, self.dataset.targets, self.ranks)
        except Interruption:
            raise StoppedError("stopped during an evaluation.") from None
        if not answers.counted.any():
            raise InputError(f"none of {len(self.dataset)} images to evaluate on could be read; fix them.")
        return answers

    def figures(self, outcome: Answers) -> dict[str, float]:
        """Return accuracy and loss, and the top-5 accuracy where there are more classes than that."""
        figures = {"accuracy": outcome.accuracy, "loss": outcome.loss}
        return figures | ({"top5": outcome.top5} if self._many else {})

    def sections(self, outcome: Answers) -> list[Section]:
        """Show confusions, classes and mistakes."""
        split, top5 = self.dataset.split or "held-out", outcome.top5 if self._many else None
        story = evaluation_story(outcome, self.dataset.labels, split=split, top5=top5)
        return answer_sections(story, surest_mistakes(self.dataset, outcome, self._saved_engine()))

    def scope(self, outcome: Answers) -> Scope:
        """Return the split, and how many of its images were read."""
        return Scope(split=self.dataset.split, images=int(outcome.answered.sum()))

    def _saved_engine(self) -> TorchEngine | None:
        """Open the model that was saved; one rank can run it, also where the one in memory is in shards."""
        if self.model_file is None or not self.model_file.is_file():
            return None
        return TorchEngine(load(self.model_file, device=self.ranks.device), self.preprocessing)

    @property
    def _many(self) -> bool:
        return len(self.dataset.labels) > 5
