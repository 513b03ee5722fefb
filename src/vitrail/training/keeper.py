"""Checkpoints of a run: written whole or not at all, checked by digest, the last few kept, the newest good one used."""

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from vitrail.base.container import open_container, write_container
from vitrail.base.errors import CheckpointError, WriteError
from vitrail.base.files import atomic_write
from vitrail.base.ranks import Ranks
from vitrail.base.tensors import from_tensors
from vitrail.data.batch import Batch
from vitrail.training.state import Progress, TrainState

_NAME = re.compile(r"step-(\d{9})\.safetensors")


@dataclass(frozen=True, kw_only=True)
class Keeper:
    """The folder of a run's checkpoints."""

    folder: Path
    run: str
    """Digest of the run's config: a checkpoint of another run is not taken."""
    keep: int = 2
    """Newest checkpoints that stay."""

    def save(self, state: TrainState, ranks: Ranks) -> None:
        """Write the state; every rank takes part in gathering it, the first one writes."""
        tensors = state.tensors()
        if ranks.first:
            self._write(tensors, state.progress)
        ranks.wait()

    def _write(self, tensors: Mapping[str, Tensor], progress: Progress) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"step-{progress.step:09}.safetensors"
        metadata = {"vitrail.run": self.run, "vitrail.progress": json.dumps(asdict(progress))}
        with atomic_write(path) as file:
            write_container(file, from_tensors(tensors, "the run"), metadata, digest=True)
        older = [found for found in self.paths() if found.name <= path.name]  # later ones are damaged: see `load`
        for old in older[self.keep :]:
            old.unlink()

    def paths(self) -> list[Path]:
        """List the checkpoints, the newest first."""
        found = [path for path in self.folder.glob("step-*.safetensors") if _NAME.fullmatch(path.name)]
        return sorted(found, reverse=True)

    def load(self, state: TrainState, ranks: Ranks) -> list[str]:
        """Restore the newest checkpoint that is whole; tell of those that are not, and what is used in their place.

        All ranks take the first one's choice: one that died while another wrote must not look further back.
        """
        notes: list[str] = []
        choice = -1
        if ranks.first:
            self._remove_parts()
            for path in self.paths():
                try:
                    self._read(path)
                except CheckpointError as error:
                    notes.append(str(error))
                    continue
                except OSError as error:
                    notes.append(f"the checkpoint {path} cannot be read: {error.strerror or error}.")
                    continue
                choice = int(_NAME.fullmatch(path.name)[1])  # type: ignore[index]
                break
            if notes:
                instead = f"The checkpoint of step {choice} is used instead."
                notes[-1] += f" {instead if choice >= 0 else 'None is left, so the run starts from the beginning.'}"
        choice = ranks.agree(choice)
        if choice >= 0:
            tensors, progress = self._read(self.folder / f"step-{choice:09}.safetensors")
            state.restore(tensors, progress)
        return notes

    def _read(self, path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
        container = open_container(path)
        if container.recorded_digest() is None or container.recorded_digest() != container.computed_digest():
            raise CheckpointError(f"the checkpoint {path} is damaged: its SHA-256 is not the one that it carries.")
        if container.metadata.get("vitrail.run") != self.run:
            raise CheckpointError(f"the checkpoint {path} belongs to a run with other settings.")
        tensors = {name: container.tensor(name) for name in container.places}
        return tensors, json.loads(container.metadata["vitrail.progress"])

    def _remove_parts(self) -> None:
        """Delete what a kill in the middle of writing has left behind."""
        for part in self.folder.glob(".step-*.part"):
            part.unlink(missing_ok=True)

    @property
    def bad_folder(self) -> Path:
        """Where batches lie whose loss was not finite."""
        return self.folder.parent / "bad"

    def keep_batch(self, batch: Batch, step: int) -> None:
        """Write a batch whose loss was not finite."""
        self.bad_folder.mkdir(exist_ok=True)
        path = self.bad_folder / f"step-{step:09}.safetensors"
        with suppress(WriteError), atomic_write(path) as file:  # a full disk must not hide the loss
            write_container(file, from_tensors(batch.tensors(), "the batch"), {}, digest=False)
