"""The 19 tasks of VTAB-1k: which of them lie in a folder, how one is run, and what the results come to (Table 9).

Every task is fine-tuned by the same row of Table 4 on its 1,000 training images and measured on its test images, each
image resized to a square as a whole. The paper's preprocessing is BiT's, which also crops and flips where the label
allows it, without a list of those tasks; here none is cropped or flipped. The score is the mean over the tasks, not
over the groups, and is the paper's only when all 19 are there.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from vitrail.base.errors import InputError, did_you_mean
from vitrail.base.ranks import Ranks
from vitrail.data.augment.settings import Augmentation
from vitrail.data.catalog import open_splits
from vitrail.data.sources.vtab import is_vtab
from vitrail.model.patches import Size
from vitrail.recipes.finetuning import FINETUNING
from vitrail.recipes.results import VTAB_GROUPS
from vitrail.runs.adapt import adapt
from vitrail.runs.config import DataConfig
from vitrail.runs.data import RunData
from vitrail.runs.folder import RunFolder
from vitrail.runs.request import facts_of, fill
from vitrail.runs.start import Source
from vitrail.runs.train import Run

TASKS = tuple(task for tasks in VTAB_GROUPS.values() for task in tasks)

# What else the folders of the tasks are called; case, spaces, - and _ do not matter.
ALIASES: dict[str, tuple[str, ...]] = {
    "caltech101": ("caltech",),
    "cifar": ("cifar100",),
    "dtd": ("textures",),
    "oxford_flowers102": ("flowers", "flowers102", "oxford_flowers"),
    "oxford_iiit_pet": ("pet", "pets", "oxford_pet", "oxford_pets", "oxford_iiit_pets"),
    "sun397": ("sun",),
    "patch_camelyon": ("camelyon", "pcam"),
    "resisc45": ("resisc",),
    "diabetic_retinopathy": ("retinopathy",),
    "clevr_count": ("clevr_count_all",),
    "clevr_dist": ("clevr_distance", "clevr_closest_object_distance"),
    "dsprites_loc": ("dspr_loc", "dsprites_location", "dsprites_label_x_position"),
    "dsprites_ori": ("dspr_ori", "dsprites_orientation", "dsprites_label_orientation"),
    "kitti": ("kitti_dist", "kitti_distance", "kitti_closest_vehicle_distance"),
    "smallnorb_azi": ("snorb_azim", "snorb_azimuth", "smallnorb_azimuth"),
    "smallnorb_ele": ("snorb_elev", "snorb_elevation", "smallnorb_elevation"),
}

_NAMES = {alias.replace("_", ""): task for task in TASKS for alias in (task, *ALIASES.get(task, ()))}


@dataclass(frozen=True, kw_only=True)
class Means:
    """What the accuracies of some tasks come to."""

    groups: Mapping[str, float]
    """The mean of each group that has a task."""
    overall: float
    """The mean over all tasks that are there."""
    tasks: int
    """How many that are; 19 make the paper's score."""

    @property
    def complete(self) -> bool:
        """Whether the mean is over all 19 tasks."""
        return self.tasks == len(TASKS)


def task_named(name: str) -> str | None:
    """Return the task that a folder's name stands for, in whatever spelling; None when it stands for none."""
    return _NAMES.get("".join(letter for letter in name.lower() if letter not in " -_"))


def find_tasks(root: Path, wanted: Sequence[str] = ()) -> dict[str, Path]:
    """Return the folders of the tasks that are there, in the order of Table 9; `wanted` ones must be."""
    if not root.is_dir():
        raise InputError(f"there is no folder {root}; give the one in which the folders of the VTAB-1k tasks lie.")
    found: dict[str, Path] = {}
    for folder in sorted(entry for entry in root.iterdir() if entry.is_dir()):
        task = task_named(folder.name)
        if task is None or not is_vtab(folder):
            continue
        if task in found:
            raise InputError(f"{found[task]} and {folder} are both the task {task}; take one of them away.")
        found[task] = folder
    if not found:
        raise InputError(
            f"{root} has no task of VTAB-1k: a folder such as {root / 'caltech101'} with the lists train800val200.txt "
            "and test.txt, and the images that they name."
        )
    chosen = [_wanted(name, found, root) for name in wanted] or list(found)
    return {task: found[task] for task in TASKS if task in chosen}


def task_data(folder: Path, *, skip_broken: str = "0") -> RunData:
    """Open the 1,000 training images and the test images of a task; classes that training lacks stay."""
    splits = open_splits(folder, skip_broken=skip_broken)
    train, test = splits["train"], splits["test"]
    if len(train.labels) < 2:
        raise InputError(f"{folder} has one class only; a classifier needs at least two.")
    return RunData(train=train, held=test, notes=tuple(dict.fromkeys((*train.notes, *test.notes))))


def task_run(
    source: Source,
    data: RunData,
    out: Path,
    ranks: Ranks,
    *,
    image_size: Size | None = None,
    steps: int | None = None,
    skip_broken: str = "0",
    changes: Mapping[str, Any],
) -> Run:
    """Make the run of a task by Table 4, with settings that were given by hand, by path."""
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
    where = DataConfig(where=data.train.where, skip_broken=skip_broken, role="transfer")
    config = fill(draft, where, data, steps=steps, epochs=None, changes=changes, evaluations=1)
    run = Run(config=config, data=data, folder=RunFolder(path=out), ranks=ranks)
    run.check()
    return run


def summarise(accuracies: Mapping[str, float]) -> Means:
    """Average the tasks that are there."""
    groups = {group: [accuracies[task] for task in tasks if task in accuracies] for group, tasks in VTAB_GROUPS.items()}
    return Means(
        groups={group: sum(values) / len(values) for group, values in groups.items() if values},
        overall=sum(accuracies.values()) / len(accuracies),
        tasks=len(accuracies),
    )


def _wanted(name: str, found: Mapping[str, Path], root: Path) -> str:
    task = task_named(name)
    if task is None:
        raise InputError(
            f"{name!r} is no task of VTAB-1k; the tasks are {', '.join(TASKS)}.{did_you_mean(name, TASKS)}"
        )
    if task not in found:
        raise InputError(f"{root} has no folder of the task {task}; there are {', '.join(found)}.")
    return task
