"""Features of any data set by one network: read from the disk if they are stored, else computed and stored."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from vitrail.base.errors import CheckpointError, ConfigError, InputError, WriteError
from vitrail.base.memory import keep_freed_memory
from vitrail.base.notes import Note, unheard
from vitrail.base.progress import Progress, silent
from vitrail.base.ranks import Ranks
from vitrail.data.budget import Budget
from vitrail.data.dataset import Dataset
from vitrail.data.preprocessing import Preprocessing
from vitrail.evaluation.batches import ranked_batches
from vitrail.evaluation.feature_files import feature_key, read_features, write_features
from vitrail.evaluation.features import Features, extract, shared
from vitrail.evaluation.finite import refuse_bad_numbers
from vitrail.runtime.engine import Engine


@dataclass(frozen=True, kw_only=True, eq=False)
class Extractor:
    """A network with its settings; calling it gives the features of a data set on every rank."""

    engine: Engine
    preprocessing: Preprocessing
    """How images become pixels; mean and std are the engine's own."""
    ranks: Ranks
    batch: int = 64
    """Images that go through the model at once."""
    workers: int = 0
    """Processes that read images; 0 reads in this one."""
    cache: Path | None = None
    """The folder of stored features, on the first rank's disk; None stores nothing."""
    progress: Progress = silent
    note: Note = unheard
    """Receives sentences for the user, on the first rank only."""

    def __post_init__(self) -> None:
        """Refuse wrong values."""
        for name, least in (("batch", 1), ("workers", 0)):
            if getattr(self, name) < least:
                raise ConfigError(f"`{name}` is {getattr(self, name)}, but must be at least {least}.")

    def __call__(self, dataset: Dataset, *, skip_broken: Budget | None = None) -> Features:
        """Return the features of every image; an unreadable one raises its error, or is taken from the budget."""
        if self.cache is None:
            features = self._computed(dataset, skip_broken)
        else:
            features = self._cached(self.cache, dataset, skip_broken)
        # each rank counts only its own broken images, and stored features may have been made with a larger budget
        broken = [(dataset.name(int(index)), "it could not be read") for index in np.flatnonzero(~features.read)]
        (skip_broken or Budget()).spend(broken, len(dataset), where=dataset.where)
        return features

    def _cached(self, cache: Path, dataset: Dataset, skip_broken: Budget | None) -> Features:
        """Return stored features, or store new ones; a full disk does not stop the work."""
        key = feature_key(self.engine, dataset, self.preprocessing, self.ranks, self.progress)
        stored = self._stored(cache, key, len(dataset))
        if stored is not None:
            refuse_bad_numbers("features", dataset, ~stored.finite)
            return stored
        features = self._computed(dataset, skip_broken)
        if self.ranks.first:
            try:
                write_features(cache, key, features)
            except (InputError, WriteError) as error:
                self.note(f"the features are used, but not stored: {error}")
        return features

    def _computed(self, dataset: Dataset, skip_broken: Budget | None) -> Features:
        keep_freed_memory()
        batches = ranked_batches(
            dataset,
            self.preprocessing,
            self.ranks,
            batch=self.batch,
            workers=self.workers,
            skip_broken=skip_broken,
            progress=self.progress,
            title=f"features of {dataset.split or 'all'} ({self.batch} images a step)",
        )
        features = extract(self.engine, batches, len(dataset), self.ranks)
        refuse_bad_numbers("features", dataset, ~features.finite)
        return features

    def _stored(self, cache: Path, key: str, images: int) -> Features | None:
        """Return the features on the first rank's disk, on every rank."""
        features = None
        if self.ranks.first:
            try:
                features = read_features(cache, key, images=images, width=self.engine.feature_width)
            except CheckpointError as error:
                self.note(f"stored features are computed again: {error}")
        if not self.ranks.agree(int(features is not None)):
            return None
        if self.ranks.world == 1:
            return features
        values = torch.zeros(images, self.engine.feature_width)
        read = torch.zeros(images, dtype=torch.uint8)
        if features is not None:
            values.copy_(features.values)
            read.copy_(torch.from_numpy(features.read))
        return Features(values=shared(values, self.ranks), read=shared(read, self.ranks).bool().numpy())
