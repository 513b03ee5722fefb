"""From a request for VTAB-1k to a complete study: the model, the tasks in the folder, a run for each."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Unpack

from vitrail.base.files import path_of
from vitrail.base.ranks import Ranks
from vitrail.model.build import as_size
from vitrail.model.patches import Size
from vitrail.published.find import model_name
from vitrail.runs.changes import Changes
from vitrail.runs.execution import Device
from vitrail.runs.start import open_source
from vitrail.studies.vtab import VtabStudy, task_data, task_run
from vitrail.studies.vtab_result import VtabResult
from vitrail.studies.vtab_tasks import TASKS, find_tasks
from vitrail.verbs.frame import training_frame
from vitrail.verbs.keywords import VtabKeywords
from vitrail.verbs.watch import watched


@dataclass(frozen=True, kw_only=True)
class VtabRequest:
    """The keywords of `vitrail.vtab`; None is the paper's value, or this machine's."""

    model: str | Path
    """The model to begin with."""
    root: str | Path
    """The folder with the folders of the tasks."""
    tasks: Sequence[str] = ()
    """Tasks to run; all that are there unless some are named."""
    out: str | Path | None = None
    image_size: int | Size | None = None
    steps: int | None = None
    batch: int | None = None
    learning_rate: float | None = None
    seed: int = 0
    skip_broken: str = "0"
    micro_batch: int | None = None
    workers: int = 0
    threads: int | None = None
    device: Device = "auto"
    num_heads: int | None = None
    architecture: str | None = None
    pickle: bool = False

    @property
    def changes(self) -> Changes:
        """The requested settings of every run."""
        return Changes(
            batch=self.batch,
            learning_rate=self.learning_rate,
            seed=self.seed,
            device=self.device,
            workers=self.workers,
            micro_batch=self.micro_batch,
        )


def vtab(model: str | Path, root: str | Path, *, quiet: bool = False, **keywords: Unpack[VtabKeywords]) -> VtabResult:
    """Fine-tune a model on the tasks of VTAB-1k in a folder by the paper's rule, beside its results (Table 9).

        >>> result = vitrail.vtab("model.safetensors", "vtab-1k/", steps=2, batch=4, image_size=32, quiet=True)
        >>> result.means.tasks, result.means.complete
        (2, False)

    The keywords are the flags of `vitrail vtab`: tasks=["dtd", "svhn"], image_size, steps, batch, learning_rate, seed,
    out, ... Called again it resumes, and keeps what is finished; a task that diverges is a row of the result.
    """
    request = VtabRequest(model=model, root=root, **keywords)
    with training_frame(request.threads, request.device, None) as (ranks, stop):
        return settle_vtab(request, ranks).carry_out(partial(watched, quiet=quiet or not ranks.first), stop)


def settle_vtab(request: VtabRequest, ranks: Ranks) -> VtabStudy:
    """Open every task before the first one starts, so that a problem with the last is reported now."""
    root = path_of(request.root, "root")
    folders = find_tasks(root, request.tasks)
    source = open_source(
        str(request.model), pickle=request.pickle, num_heads=request.num_heads, architecture=request.architecture
    )
    usual = Path("runs") / f"vtab-{model_name(str(request.model))}"
    path = usual if request.out is None else path_of(request.out, "out")
    runs = {
        task: task_run(
            source,
            task_data(folder, skip_broken=request.skip_broken),
            path / task,
            ranks,
            image_size=None if request.image_size is None else as_size(request.image_size),
            steps=request.steps,
            skip_broken=request.skip_broken,
            changes=request.changes,
        )
        for task, folder in folders.items()
    }
    there = find_tasks(root)
    return VtabStudy(
        model=str(request.model),
        root=str(request.root),
        path=path,
        runs=runs,
        missing=tuple(task for task in TASKS if task not in there),
        ranks=ranks,
    )
