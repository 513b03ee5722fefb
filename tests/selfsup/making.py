"""Small runs without labels for the tests of self-supervision."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tests.training.making import HELD, made_config, made_dataset, plain
from vitrail.base.ranks import Ranks
from vitrail.data.augment.settings import Augmentation
from vitrail.data.batch import Batch, class_targets
from vitrail.model.contract import Model
from vitrail.runs.config import RunConfig
from vitrail.runs.data import RunData
from vitrail.runs.data_config import DataFacts
from vitrail.runs.folder import RunFolder
from vitrail.runs.train import Run
from vitrail.selfsup.objective import SelfSupervisedConfig
from vitrail.training.classification import ClassificationConfig
from vitrail.training.learner import Learner, Task, make_learner

NOISE = np.random.default_rng(5)


def unlabelled_config(objective: SelfSupervisedConfig, **changes: Any) -> RunConfig:
    """A run whose result depends on nothing but rounding when ranks or micro-batches change."""
    config = made_config(averaging=None, augmentation=Augmentation(area=(0.5, 1.0)), log_every=1)
    config = plain(replace(config, objective=ClassificationConfig()))
    settings = {"model": replace(config.model, num_classes=0), "facts": DataFacts(images=42)}
    return replace(config, **settings | {"objective": objective} | changes)


def unlabelled_run(folder: Path, config: RunConfig, *, ranks: Ranks | None = None) -> Run:
    folder.mkdir(parents=True, exist_ok=True)
    train, held = made_dataset(42), made_dataset(HELD, seed=1, split="val")
    return Run(
        config=config, data=RunData(train=train, evaluation=held), folder=RunFolder(path=folder), ranks=ranks or Ranks()
    )


def noise_batch(images: int = 4, size: int = 8, channels: int = 3, *, first: int = 0) -> Batch:
    """Images of noise, with the numbers that a stream of training would give them."""
    pixels = np.random.default_rng(first).integers(0, 256, (images, channels, size, size), dtype=np.uint8)
    numbers = torch.arange(first, first + images)
    targets = class_targets(torch.zeros(images, dtype=torch.int64))
    return Batch(views=(torch.from_numpy(pixels),), targets=targets, indices=numbers, positions=numbers)


def learner_of(config: RunConfig, model: Model, **task: Any) -> Learner:
    made = Task(preprocessing=config.preprocessing, images=42, batch=config.batch, seed=config.seed, **task)
    return make_learner(config.objective, model, made, seed=1)
