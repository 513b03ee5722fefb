"""Checkpoints of a run: written whole or not at all, checked by digest, the last few kept, the newest good one used."""

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from torch import Tensor

from vitrail.base.container import open_container, write_container
from vitrail.base.errors import CheckpointError, ConfigError, WriteError
from vitrail.base.files import atomic_write
from vitrail.base.ranks import Ranks
from vitrail.base.reading import parse_json
from vitrail.base.settings import from_dict, setting_differences
from vitrail.base.tensors import from_tensors
from vitrail.data.batch import Batch
from vitrail.training.state import Progress, TrainState

MARK = "begun.json"
"""The file beside the checkpoints that exists once there was one."""
_NAME = re.compile(r"step-(\d{9})\.safetensors")
_WAY_OUT = "bring back the folder, or begin again with `restart`, which renames the old folder."


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """A stored state."""

    tensors: dict[str, Tensor]
    progress: Progress
    run: str
    """Digest of its run's settings."""
    settings: dict[str, Any]
    """The settings themselves."""
    digest: str
    """SHA-256 of the file."""


@dataclass(frozen=True, kw_only=True)
class Keeper:
    """The folder of a run's checkpoints."""

    folder: Path
    run: str
    """Digest of the run's settings: a checkpoint of another run is refused."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """The settings that decide the result, for comparison with another run's."""
    keep: int = 2
    """Newest checkpoints that stay."""

    def save(self, state: TrainState, ranks: Ranks) -> None:
        """Write the state; every rank takes part in gathering it, the first one writes."""
        tensors = state.tensors()
        if ranks.first:
            self.write(tensors, state.progress)
        ranks.wait()

    def write(self, tensors: Mapping[str, Tensor], progress: Progress) -> None:
        """Write a state as a checkpoint of this run, and remove those that are too old."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"step-{progress.step:09}.safetensors"
        metadata = {
            "vitrail.run": self.run,
            "vitrail.settings": json.dumps(self.settings),
            "vitrail.progress": json.dumps(asdict(progress)),
        }
        with atomic_write(path) as file:
            write_container(file, from_tensors(tensors, "the run"), metadata, digest=True)
        if not self.mark.is_file():
            with atomic_write(self.mark) as file:
                file.write(json.dumps({"first_checkpoint": progress.step}).encode() + b"\n")
        older = [other for other in self.paths() if other.name <= path.name]  # later ones are damaged: see `load`
        for old in older[self.keep :]:
            old.unlink()

    @property
    def mark(self) -> Path:
        """The file that is there once the run has had a checkpoint."""
        return self.folder.parent / MARK

    def paths(self) -> list[Path]:
        """List the checkpoints, the newest first."""
        return checkpoint_paths(self.folder)

    def load(self, state: TrainState, ranks: Ranks) -> list[str]:
        """Restore the newest checkpoint that is whole; return notes on the others.

        A run that has had checkpoints is refused when none of them is left, or when they are of other settings: it
        must not start from the beginning unnoticed. All ranks take the first one's choice: one that died while
        another wrote must not look further back.
        """
        notes: list[str] = []
        step = ranks.follow(lambda: self._choose(notes))
        if step >= 0:
            checkpoint = read_checkpoint(self.folder / f"step-{step:09}.safetensors")
            state.restore(checkpoint.tensors, checkpoint.progress)
        return notes

    def _choose(self, notes: list[str]) -> int:
        """Return the step of the newest good checkpoint, -1 for a run that has had none."""
        for part in self.folder.glob(".step-*.part"):
            part.unlink(missing_ok=True)  # left by a kill while writing
        for path in self.paths():
            try:
                checkpoint = read_checkpoint(path)
            except CheckpointError as error:
                notes.append(str(error))
                continue
            if checkpoint.run != self.run:
                raise CheckpointError(self._foreign(path, checkpoint))
            if notes:
                notes[-1] += f" The checkpoint of step {checkpoint.progress.step} is used instead."
            return checkpoint.progress.step
        if notes:
            raise CheckpointError(
                f"no checkpoint of {self.folder.parent} can be read: {notes[0].rstrip('.')}; {_WAY_OUT}"
            )
        if self.mark.is_file():
            raise CheckpointError(f"{self.folder.parent} has had checkpoints, but none is left; {_WAY_OUT}")
        return -1

    def _foreign(self, path: Path, checkpoint: Checkpoint) -> str:
        apart = (
            "; ".join(setting_differences(self.settings, checkpoint.settings)) or "the settings are of another version"
        )
        return (
            f"the checkpoint {path} belongs to a run with other settings: {apart}. Give config.json the settings that "
            "the run began with; to train for longer, `extend` it; to begin again, use `restart`."
        )

    @property
    def bad_folder(self) -> Path:
        """Where batches are kept whose loss was not finite."""
        return self.folder.parent / "bad"

    def keep_batch(self, batch: Batch, step: int) -> None:
        """Write a batch whose loss was not finite."""
        self.bad_folder.mkdir(exist_ok=True)
        path = self.bad_folder / f"step-{step:09}.safetensors"
        with suppress(WriteError), atomic_write(path) as file:  # a full disk must not hide the loss
            write_container(file, from_tensors(batch.tensors(), "the batch"), {}, digest=False)


def checkpoint_paths(folder: Path) -> list[Path]:
    """List the checkpoints of a folder, the newest first."""
    return sorted((path for path in folder.glob("step-*.safetensors") if _NAME.fullmatch(path.name)), reverse=True)


def read_checkpoint(path: Path) -> Checkpoint:
    """Read a state and check that it is whole; the sentence of a refusal names the file."""
    try:
        container = open_container(path)
        digest = container.computed_digest()
    except OSError as error:
        raise CheckpointError(f"the checkpoint {path} cannot be read: {error.strerror or error}.") from None
    if container.recorded_digest() != digest:
        raise CheckpointError(f"the checkpoint {path} is damaged: its SHA-256 is not the one that it carries.")
    texts = {name: container.metadata.get(f"vitrail.{name}", "null") for name in ("settings", "progress")}
    tables = {name: parse_json(text, f"the {name} in {path}", CheckpointError) for name, text in texts.items()}
    try:
        progress = from_dict(Progress, tables["progress"], where=f"the progress in {path}")
    except ConfigError as error:
        raise CheckpointError(str(error)) from None
    return Checkpoint(
        tensors={name: container.tensor(name) for name in container.places},
        progress=progress,
        run=container.metadata.get("vitrail.run", ""),
        settings=tables["settings"] or {},
        digest=digest,
    )
