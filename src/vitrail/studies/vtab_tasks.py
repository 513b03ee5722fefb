"""The 19 tasks of VTAB-1k: what they are called, and which of them lie in a folder."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from vitrail.base.errors import InputError, did_you_mean
from vitrail.data.sources.vtab import is_vtab
from vitrail.recipes.results import VTAB_GROUPS

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


def _wanted(name: str, found: Mapping[str, Path], root: Path) -> str:
    task = task_named(name)
    if task is None:
        raise InputError(
            f"{name!r} is not a task of VTAB-1k; the tasks are {', '.join(TASKS)}.{did_you_mean(name, TASKS)}"
        )
    if task not in found:
        raise InputError(f"{root} has no folder of the task {task}; there are {', '.join(found)}.")
    return task
