"""A learner that has everything that one may have: a parameter, a buffer, a teacher, two views, and no need of labels.

The student sees the small view, the teacher the large one; the student learns to say what the teacher says.
"""

import copy
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from tests.training.making import made_config, made_dataset, made_loop, made_run, plain
from vitrail.base.ranks import Ranks
from vitrail.data.augment.settings import Augmentation
from vitrail.data.batch import Batch, View
from vitrail.data.transforms import normalise
from vitrail.model.contract import Model
from vitrail.model.family import ModelConfig
from vitrail.report.markup import text
from vitrail.report.section import Section, section
from vitrail.runs.config import RunConfig
from vitrail.runs.data import RunData
from vitrail.runs.data_config import DataFacts
from vitrail.runs.evaluator import RunEvaluator
from vitrail.runs.execution import Execution
from vitrail.runs.train import Run
from vitrail.training.learner import Learner, ObjectiveConfig, Task
from vitrail.training.loop import Loop


@dataclass(frozen=True, kw_only=True)
class FollowingConfig(ObjectiveConfig, kind="following"):
    """How closely the teacher follows."""

    needs_labels = False
    keeps: float = 0.9
    """Part of the teacher that stays in a step."""
    side: int = 4
    """Pixels of the small view."""

    def views(self, model: ModelConfig) -> tuple[View, ...]:  # noqa: ARG002 - the same for every model
        return (View(augmentation=Augmentation(area=(0.2, 0.6)), image_size=(self.side, self.side)),)

    def learner(self, model: Model, task: Task) -> "Following":
        return Following(model, self, task)


class Following(Learner):
    """Makes the projection of a small view like what a slow copy of the model says of the large one."""

    score = "distance_mean"
    higher_is_better = False
    centre: Tensor
    seen: Tensor

    def __init__(self, model: Model, config: FollowingConfig, task: Task) -> None:
        super().__init__(model)
        self.config, self.task = config, task
        width = model.config.feature_width
        self.projector = nn.Linear(width, width)
        self.scale = nn.Parameter(torch.ones(1))
        self.teacher = copy.deepcopy(model).requires_grad_(False)
        self.register_buffer("centre", torch.zeros(width))
        self.register_buffer("seen", torch.zeros((), dtype=torch.int64))

    def train(self, mode: bool = True) -> "Following":
        super().train(mode)
        self.teacher.eval()
        return self

    def forward(self, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        large, small = (normalise(view, self.task.preprocessing) for view in batch.views)
        with torch.no_grad():
            wanted = self.teacher.features(large) - self.centre
        answers = self.scale * self.projector(self.model.features(small, any_size=True))
        distances = (answers - wanted).square().mean(1)
        return distances.mean(), {"length": answers.detach().norm(dim=1).sum()}

    def after_step(self, step: int, steps: int) -> None:
        assert 0 <= step < steps
        with torch.no_grad():
            pairs = zip(self.teacher.parameters(), self.model.parameters(), strict=True)
            for slow, quick in pairs:
                slow.lerp_(quick.detach(), 1 - self.config.keeps)
        self.seen += 1
        self.centre += 0.01 / self.seen

    def blocks(self) -> list[nn.Module]:
        return super().blocks() + [layer.block for layer in self.teacher.layers() if layer.block is not None]


@dataclass(frozen=True, kw_only=True, eq=False)
class Distance(RunEvaluator[float]):
    """The mean size of the representation of a fixed image; its plain mean is near 0, where rounding is everything."""

    name: str = "distance"
    every: int = 4

    def evaluate(self, model: Model) -> float:
        with torch.no_grad():
            return model(torch.ones(1, 3, *model.config.image_size)).abs().mean().item()

    def figures(self, outcome: float) -> dict[str, float]:
        return {"mean": outcome}

    def sections(self, outcome: float) -> list[Section]:
        return [section(self.name.capitalize(), text(f"a mean of {outcome:.9f}"))]


def following_config(**changes: Any) -> RunConfig:
    """A run of that learner, whose result depends on the number of ranks but for rounding."""
    config = plain(made_config(averaging=None, augmentation=Augmentation(area=(0.5, 1.0)), log_every=1))
    return replace(
        config,
        **{
            "model": replace(config.model, num_classes=0),
            "objective": FollowingConfig(),
            "facts": DataFacts(images=42),
            "execution": Execution(checkpoint_every=2, device="cpu"),
        }
        | changes,
    )


def following_run(folder: Path, config: RunConfig | None = None, *, ranks: Ranks | None = None) -> Run:
    """A run on images without labels."""
    data = made_dataset(42)
    unlabelled = replace(data, targets=np.full(len(data), -1), labels=())
    run = made_run(folder, config or following_config(), ranks=ranks)
    return replace(
        run, data=RunData(train=unlabelled, evaluation=None), further=(Distance(), Distance(name="often", every=3))
    )


def resumed_loop(folder: Path) -> Loop:
    return made_loop(following_run(folder), resume=True)


if __name__ == "__main__":  # killed by a test
    torch.set_num_threads(1)
    resumed_loop(Path(sys.argv[1])).run()
