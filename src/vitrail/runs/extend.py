"""Training for longer: a new run, in a folder of its own, that begins with the state of another.

    old run, stopped or finished at step S -> its newest checkpoint -> the first checkpoint of the new run, at step S

The new run counts its steps on from S, so that its batches are those that the old one would have had next, and its
learning rate is that of a run which was planned with its length from the beginning.
"""

from dataclasses import replace
from pathlib import Path

from vitrail.base.errors import CheckpointError, InputError
from vitrail.runs.config import ExtendConfig, RunConfig
from vitrail.runs.folder import RunFolder
from vitrail.training.keeper import Checkpoint, Keeper, checkpoint_paths, read_checkpoint
from vitrail.training.state import Progress


def extension_of(folder: RunFolder) -> ExtendConfig:
    """Return the newest state of a run that can be read."""
    problems = []
    for path in checkpoint_paths(folder.checkpoints):
        try:
            checkpoint = read_checkpoint(path)
        except CheckpointError as error:
            problems.append(str(error))
            continue
        return ExtendConfig(run=str(folder.path), step=checkpoint.progress.step, digest=checkpoint.digest)
    reason = f": {problems[0]}" if problems else "; it has none yet."
    raise InputError(f"{folder.path} has no checkpoint from which it could be extended{reason}")


def adopt(config: RunConfig, keeper: Keeper) -> int:
    """Write the state that a run extends as its first checkpoint, unless it has one; return the step."""
    extends = config.extends
    if extends is None or keeper.mark.is_file() or keeper.paths():
        return 0
    checkpoint = _read(extends)
    keeper.write(checkpoint.tensors, continued(checkpoint.progress))
    return extends.step


def continued(progress: Progress) -> Progress:
    """Return where the new run begins; the best evaluation, early stopping and time start again."""
    return replace(progress, best=None, best_step=None, stopped=False, seconds=0.0, window={}, bad_steps=[])


def _read(extends: ExtendConfig) -> Checkpoint:
    folder = RunFolder(path=Path(extends.run)).checkpoints
    path = folder / f"step-{extends.step:09}.safetensors"
    if not path.is_file():
        raise InputError(f"{path}, with which the new run begins, does not exist any more; give another `out`.")
    checkpoint = read_checkpoint(path)
    if checkpoint.digest != extends.digest:
        raise InputError(f"{path} is not the state with which the new run begins; give another `out`.")
    return checkpoint
