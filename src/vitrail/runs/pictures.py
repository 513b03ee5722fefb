"""How a learner completes images, in the course of training: pictures of images that it does not learn from."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import UInt8

from vitrail.base.files import atomic_write
from vitrail.base.ranks import Ranks
from vitrail.data.batch import Batch
from vitrail.data.budget import Budget
from vitrail.data.dataset import Dataset
from vitrail.data.loader import evaluation_batches
from vitrail.data.preprocessing import Preprocessing
from vitrail.model.contract import Model
from vitrail.report.learned import Row, completed_section
from vitrail.report.section import Section
from vitrail.runs.evaluator import RunEvaluator
from vitrail.selfsup.objective import Reconstructing
from vitrail.training.learner import Learner

SHOWN = 6
MEASURED = 256
"""Images on which the loss is measured."""
COLUMNS = 4
"""Moments of training that the report shows."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Pictures(RunEvaluator[dict[str, float]]):
    """The loss on images that are held out, and how some of them are completed."""

    name = "val"
    every: int
    images: Dataset
    preprocessing: Preprocessing
    batch: int
    folder: Path
    """Where pictures of each evaluation are kept for the report."""
    ranks: Ranks
    allowance: Budget | None

    def evaluate_learner(self, learner: Learner, step: int) -> dict[str, float]:
        """Measure the loss, and keep pictures."""
        assert isinstance(learner, Reconstructing)  # noqa: S101 - made for these alone
        total, seen = 0.0, 0
        with torch.no_grad():  # a learner's own pass ends the gathering of outer weights: it comes last
            first = next(self._batches()).split(SHOWN)[0].to(self.ranks.device)
            shown = learner.reconstruct(first.images, first.indices)
            for batch in self._batches():
                total += float(learner(batch.to(self.ranks.device))[0]) * len(batch)
                seen += len(batch)
        if self.ranks.first:
            pictures = torch.stack([first.images, shown.corrupted, shown.predicted])
            self.folder.mkdir(parents=True, exist_ok=True)
            with atomic_write(self.folder / f"step-{step:09}.npy") as file:
                np.save(file, pictures.cpu().contiguous().numpy(), allow_pickle=False)
        return {"loss": total / seen}

    def evaluate(self, model: Model) -> dict[str, float]:  # noqa: ARG002 - a model alone completes nothing
        """Return nothing: a model without its learner completes no images."""
        return {}

    def figures(self, outcome: dict[str, float]) -> dict[str, float]:
        """Return the loss."""
        return outcome

    def sections(self, outcome: dict[str, float]) -> list[Section]:  # noqa: ARG002 - pictures are in the folder
        """Show images, what was left of them, and completions of several moments."""
        paths = sorted(self.folder.glob("step-*.npy"))
        if not paths:
            return []
        chosen = [paths[at] for at in sorted({round(at) for at in np.linspace(0, len(paths) - 1, COLUMNS)})]
        moments = {int(path.stem.removeprefix("step-")): _read(path) for path in chosen}
        last = moments[max(moments)]
        rows = []
        for image in range(last.shape[1]):
            pictures = [last[0, image], last[1, image], *(moment[2, image] for moment in moments.values())]
            words = ["image", "seen", *(f"step {step:,}" for step in moments)]
            rows.append(Row(pictures=[torch.from_numpy(picture) for picture in pictures], words=words))
        return [completed_section(rows)]

    def _batches(self) -> Iterator[Batch]:
        """Yield images from all over the split, which is often sorted, those that are shown first; on every rank."""
        count = len(self.images)
        shown, measured = (np.linspace(0, count - 1, min(most, count)).astype(int) for most in (SHOWN, MEASURED))
        some = self.images.take(np.concatenate([shown, measured[~np.isin(measured, shown)]]))
        return evaluation_batches(some, self.preprocessing, batch=max(self.batch, SHOWN), skip_broken=self.allowance)


def _read(path: Path) -> UInt8[np.ndarray, "kind image channel height width"]:
    with path.open("rb") as file:
        return np.load(file, allow_pickle=False)
