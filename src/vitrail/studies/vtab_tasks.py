"""The 19 tasks of VTAB-1k: their names, and those that a folder has."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from vitrail.base.errors import InputError, did_you_mean
from vitrail.data.sources.vtab import is_vtab
from vitrail.recipes.results import VTAB_GROUPS

TASKS = tuple(task for tasks in VTAB_GROUPS.values() for task in tasks)

# Other names for the folders of the tasks; case, spaces, - and _ do not matter.
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
    """Return the task that the name of a folder stands for, in any spelling, or None."""
    return _NAMES.get("".join(letter for letter in name.lower() if letter not in " -_"))


def find_tasks(root: Path, names: Sequence[str] = ()) -> dict[str, Path]:
    """Return the folders of the tasks, in the order of Table 9: those of `names`, which must exist, or all."""
    if not root.is_dir():
        raise InputError(f"there is no folder {root}; give the one in which the folders of the VTAB-1k tasks lie.")
    folders: dict[str, Path] = {}
    for folder in sorted(entry for entry in root.iterdir() if entry.is_dir()):
        task = task_named(folder.name)
        if task is None or not is_vtab(folder):
            continue
        if task in folders:
            raise InputError(f"{folders[task]} and {folder} are both the task {task}; move one of them away.")
        folders[task] = folder
    if not folders:
        raise InputError(
            f"{root} has no task of VTAB-1k: a folder such as {root / 'caltech101'} with the lists train800val200.txt "
            "and test.txt, and the images that they name."
        )
    tasks = [_check_task(name, folders, root) for name in names] or list(folders)
    return {task: folders[task] for task in TASKS if task in tasks}


def _check_task(name: str, folders: Mapping[str, Path], root: Path) -> str:
    task = task_named(name)
    if task is None:
        raise InputError(
            f"{name!r} is not a task of VTAB-1k; the tasks are {', '.join(TASKS)}.{did_you_mean(name, TASKS)}"
        )
    if task not in folders:
        raise InputError(f"{root} has no folder of the task {task}; there are {', '.join(folders)}.")
    return task
