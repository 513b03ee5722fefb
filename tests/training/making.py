"""Small runs on made-up data for the tests of training."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from vitrail.base.ranks import Ranks
from vitrail.data.augment.settings import Augmentation
from vitrail.data.dataset import Dataset
from vitrail.data.preprocessing import Preprocessing
from vitrail.model.config import ViTConfig
from vitrail.runs.config import RunConfig
from vitrail.runs.data import RunData
from vitrail.runs.data_config import DataConfig, DataFacts
from vitrail.runs.execution import Execution
from vitrail.runs.folder import RunFolder
from vitrail.runs.train import Run
from vitrail.training.classification import ClassificationConfig
from vitrail.training.loop import Loop
from vitrail.training.optimizers import OptimizerConfig
from vitrail.training.schedules import Schedule
from vitrail.training.signals import StopSignal

SIZE = (8, 8)
CLASSES = ("dark", "bright", "left")


@dataclass(frozen=True)
class Made:
    """Images in memory."""

    images: np.ndarray

    def __len__(self) -> int:
        return len(self.images)

    def name(self, row: int) -> str:
        return f"image {row}"

    def read(self, row: int) -> np.ndarray:
        return self.images[row]

    def digest(self, rows: np.ndarray) -> bytes:
        return b"".join(bytes(self.read(row)) for row in rows.tolist())


def made_dataset(count: int, *, seed: int = 0, split: str = "train") -> Dataset:
    """Dark images, bright images, and images with a bright left half."""
    generator = np.random.default_rng(seed)
    targets = np.arange(count) % len(CLASSES)
    images = generator.integers(0, 90, (count, *SIZE, 3), dtype=np.uint8)
    images[targets == 1] += 120
    images[targets == 2, :, : SIZE[1] // 2] += 120
    return Dataset(
        pictures=Made(images), rows=np.arange(count), targets=targets, labels=CLASSES, where="made", split=split
    )


def made_config(**changes: Any) -> RunConfig:
    """Settings of a run with everything that has a state of its own: averaging, mixing, dropout, dropped patches."""
    settings: dict[str, Any] = {
        "data": DataConfig(where="made"),
        "facts": DataFacts(labels=CLASSES, images=42),
        "model": ViTConfig(
            dim=8,
            depth=2,
            num_heads=2,
            mlp_dim=16,
            patch_size=(2, 2),
            image_size=SIZE,
            num_classes=len(CLASSES),
            pool="mean",
            dropout=0.1,
            stochastic_depth=0.1,
        ),
        "preprocessing": Preprocessing(image_size=SIZE),
        "augmentation": Augmentation(area=(0.5, 1.0), mixup=0.2, cutmix=0.5),
        "objective": ClassificationConfig(label_smoothing=0.1, drop_patches=0.25),
        "optimizer": OptimizerConfig(weight_decay=0.05, clip_norm=1.0),
        "schedule": Schedule(peak=1e-2, warmup_steps=2),
        "steps": 10,
        "batch": 8,
        "averaging": 0.9,
        "evaluate_every": 4,
        "log_every": 3,
        "seed": 3,
        "execution": Execution(checkpoint_every=2, device="cpu"),
    }
    return RunConfig(**settings | changes)


def plain(config: RunConfig) -> RunConfig:
    """The same run without chance inside a step, so that ranks and micro-batches change nothing but rounding."""
    return replace(
        config,
        model=replace(config.model, dropout=0.0, stochastic_depth=0.0),
        objective=replace(config.objective, drop_patches=0.0),
    )


def made_archive(path: Path, images: int = 30) -> Path:
    """Write so many training images, and 12 test images, as arrays."""
    train, test = made_dataset(images), made_dataset(12, seed=1)
    arrays = {"x_train": train.pictures.images, "x_test": test.pictures.images}  # type: ignore[attr-defined]
    np.savez(path, **arrays, y_train=train.targets, y_test=test.targets, class_names=np.array(CLASSES))
    return path


HELD = 17
"""Two ranks have 8 and 9 of them: two and three batches of 4."""


def made_run(folder: Path, config: RunConfig | None = None, *, ranks: Ranks | None = None) -> Run:
    folder.mkdir(parents=True, exist_ok=True)
    return Run(
        config=config or made_config(),
        data=RunData(train=made_dataset(42), evaluation=made_dataset(HELD, seed=1, split="val")),
        folder=RunFolder(path=folder),
        ranks=ranks or Ranks(),
    )


def silent(_: int, __: dict[str, float]) -> None:
    """Watch nothing."""


def made_loop(run: Run, *, resume: bool = False, stop: StopSignal | None = None) -> Loop:
    loop = run.loop(watch=silent, stop=stop or StopSignal())
    if resume:
        loop.keeper.load(loop.state, run.ranks)
        loop.journal.rewind(loop.state.progress.step)
    return loop


def weights(loop: Loop) -> dict[str, torch.Tensor]:
    """Every tensor of the state."""
    return {name: tensor.clone() for name, tensor in loop.state.tensors().items()}


def assert_same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> None:
    """Fail unless every bit is the same."""
    assert one.keys() == other.keys()
    for name in one:
        assert torch.equal(one[name], other[name]), name


class StopAfter(StopSignal):
    """A stop signal that is given after so many looks, on one rank only where there are several."""

    def __init__(self, looks: int, *, here: bool = True) -> None:
        super().__init__()
        self.looks, self.here = looks, here

    @property
    def requested(self) -> bool:
        self.looks -= 1
        return self.here and self.looks <= 0

    @requested.setter
    def requested(self, value: bool) -> None:
        """Ignore what a real signal would set."""
