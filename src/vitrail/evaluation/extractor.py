"""Features of any data set by one network: from the disk where they are there, computed and stored otherwise."""

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
from vitrail.data.loader import evaluation_batches
from vitrail.data.preprocessing import Preprocessing
from vitrail.data.sampler import evaluation_shard
from vitrail.evaluation.feature_files import feature_key, read_features, write_features
from vitrail.evaluation.features import Features, extract, shared
from vitrail.evaluation.finite import refuse_bad_numbers
from vitrail.runtime.engine import Engine


@dataclass(frozen=True, kw_only=True, eq=False)
class Extractor:
    """A network, and how it is asked; calling it gives the features of a data set on every rank."""

    engine: Engine
    preprocessing: Preprocessing
    """How images become pixels; mean and std are the engine's own."""
    ranks: Ranks
    batch: int = 64
    """Images that go through the model at once."""
    workers: int = 0
    """Processes that read images; 0 reads in this one."""
    cache: Path | None = None
    """The folder of stored features, of which only the first rank's counts; None stores nothing."""
    progress: Progress = silent
    note: Note = unheard
    """Told what a person should know; only the first rank has something to say."""

    def __post_init__(self) -> None:
        """Refuse what cannot be done."""
        for name, least in (("batch", 1), ("workers", 0)):
            if getattr(self, name) < least:
                raise ConfigError(f"`{name}` is {getattr(self, name)}, but must be at least {least}.")

    def __call__(self, dataset: Dataset, *, skip_broken: Budget | None = None) -> Features:
        """Return the features of every image; one that cannot be read raises its error, or is spent."""
        if self.cache is None:
            found = self._computed(dataset, skip_broken)
        else:
            found = self._kept(self.cache, dataset, skip_broken)
        # ranks count what is broken each for itself, and what was allowed when it was stored need not be allowed now
        broken = [(dataset.name(int(index)), "it could not be read") for index in np.flatnonzero(~found.read)]
        (skip_broken or Budget()).spend(broken, len(dataset), where=dataset.where)
        return found

    def _kept(self, cache: Path, dataset: Dataset, skip_broken: Budget | None) -> Features:
        """Return stored features, or store new ones; a disk that cannot hold them is no reason to stop."""
        key = feature_key(self.engine, dataset, self.preprocessing, self.ranks, self.progress)
        found = self._stored(cache, key, len(dataset))
        if found is not None:
            refuse_bad_numbers("features", dataset, ~found.finite)
            return found
        made = self._computed(dataset, skip_broken)
        if self.ranks.first:
            try:
                write_features(cache, key, made)
            except (InputError, WriteError) as error:
                self.note(f"the features are used, but not kept: {error}")
        return made

    def _computed(self, dataset: Dataset, skip_broken: Budget | None) -> Features:
        keep_freed_memory()
        ranks = self.ranks
        batches = evaluation_batches(
            dataset,
            self.preprocessing,
            batch=self.batch,
            rank=ranks.rank,
            world=ranks.world,
            workers=self.workers,
            skip_broken=skip_broken,
        )
        images = len(evaluation_shard(len(dataset), rank=ranks.rank, world=ranks.world))
        title = f"features of {dataset.split or 'all'} ({self.batch} images a step)"
        watched = self.progress(batches, total=-(-images // self.batch), title=title)
        made = extract(self.engine, watched, len(dataset), ranks)
        refuse_bad_numbers("features", dataset, ~made.finite)
        return made

    def _stored(self, cache: Path, key: str, images: int) -> Features | None:
        """Return what the first rank has on its disk, on every rank."""
        found = None
        if self.ranks.first:
            try:
                found = read_features(cache, key, images=images, width=self.engine.feature_width)
            except CheckpointError as error:
                self.note(f"stored features are made again: {error}")
        if not self.ranks.agree(int(found is not None)):
            return None
        if self.ranks.world == 1:
            return found
        values = torch.zeros(images, self.engine.feature_width)
        read = torch.zeros(images, dtype=torch.uint8)
        if found is not None:
            values.copy_(found.values)
            read.copy_(torch.from_numpy(found.read))
        return Features(values=shared(values, self.ranks), read=shared(read, self.ranks).bool().numpy())
