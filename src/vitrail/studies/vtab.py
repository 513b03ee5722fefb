"""VTAB-1k: every task is a run by the same row of Table 4, and the score is their mean (Table 9).

A task is fine-tuned on its 1,000 training images and measured on its test images, each image resized to a square as a
whole. The paper's preprocessing is BiT's, which also crops and flips where the label allows it, without a list of those
tasks; here none is cropped or flipped. The score is the mean over the tasks, not over the groups, and is the paper's
only with all 19 tasks.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from vitrail.base.errors import InputError
from vitrail.base.ranks import Ranks
from vitrail.data.augment.settings import Augmentation
from vitrail.data.catalog import open_splits
from vitrail.model.patches import Size
from vitrail.recipes.finetuning import FINETUNING
from vitrail.runs.adapt import adapt
from vitrail.runs.changes import Changes
from vitrail.runs.data import RunData, absolute
from vitrail.runs.data_config import DataConfig
from vitrail.runs.folder import SERIES_LOCK, RunFolder, claim_folder, claimed
from vitrail.runs.request import facts_of, fill
from vitrail.runs.series import Cell, Series, Watch
from vitrail.runs.start import Source
from vitrail.runs.train import Run
from vitrail.studies.vtab_result import VtabResult
from vitrail.training.signals import StopSignal


@dataclass(frozen=True, kw_only=True)
class VtabStudy:
    """Tasks that are ready to be run."""

    model: str
    root: str
    path: Path
    runs: Mapping[str, Run]
    """The run of each task, in the order of Table 9."""
    missing: tuple[str, ...]
    ranks: Ranks

    def carry_out(self, watch: Watch, stop: StopSignal) -> VtabResult:
        """Run the tasks that are not finished; all ranks call it together."""
        series = Series(path=self.path, ranks=self.ranks, watch=watch, stop=stop)
        with claimed(claim_folder(self.path, SERIES_LOCK), self.ranks):
            table = series.carry_out([_cell(task, run) for task, run in self.runs.items()])
        return VtabResult(model=self.model, root=self.root, path=self.path, table=table, missing=self.missing)


def _cell(task: str, run: Run) -> Cell:
    data = run.data
    size = f"{len(data.train)} images of {data.classes} classes, {data.held_out} to be measured on."
    return Cell(name=task, run=run, varied={"task": task}, notes=(size, *data.notes))


def task_data(folder: Path, *, skip_broken: str = "0") -> RunData:
    """Open the 1,000 training images and the test images of a task; classes without training images stay."""
    splits = open_splits(folder, skip_broken=skip_broken)
    train, test = splits["train"], splits["test"]
    if len(train.labels) < 2:
        raise InputError(f"{folder} has only one class; a classifier needs at least two.")
    return RunData(train=train, evaluation=test, notes=tuple(dict.fromkeys((*train.notes, *test.notes))))


def task_run(
    source: Source,
    data: RunData,
    out: Path,
    ranks: Ranks,
    *,
    image_size: Size | None = None,
    steps: int | None = None,
    skip_broken: str = "0",
    changes: Changes,
) -> Run:
    """Make the run of a task by Table 4."""
    adaptation = FINETUNING["finetune-vtab"].adaptation()
    pixels = replace(source.preprocessing, geometry="square", crop_fraction=1.0)
    whole = Augmentation(crop="none", flip=0.0, interpolation=pixels.interpolation, antialias=pixels.antialias)
    draft = adapt(
        replace(source, preprocessing=pixels),
        facts_of(data, source.config.channels),
        replace(adaptation, augmentation=whole),
        image_size=image_size,
        frozen=False,
    )
    where = DataConfig(where=absolute(data.train.where), skip_broken=skip_broken, role="transfer")
    config = fill(draft, where, data, changes, steps=steps, evaluations=1)
    run = Run(config=config, data=data, folder=RunFolder(path=out), ranks=ranks)
    run.check()
    return run
