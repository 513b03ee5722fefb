"""What learns: a learner owns the model, whatever else is trained or averaged beside it, and the loss.

    batch -> learner -> loss, sums;   the run saves learner.saved, which is its model or that one's teacher

A new objective is a dataclass and a module, in any file:

    @dataclass(frozen=True, kw_only=True)
    class ToyConfig(ObjectiveConfig, kind="toy"): ...

    class Toy(Learner): ...

Settings name it by its `kind`. Optimiser, freezing, ranks, checkpoints and resume then take care of everything that it
has: parameters, buffers, a teacher.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import torch
from torch import Tensor, nn

from vitrail.base.ranks import Ranks
from vitrail.base.settings import Tagged
from vitrail.data.batch import Batch, View
from vitrail.data.preprocessing import Preprocessing
from vitrail.model.contract import Model
from vitrail.model.family import ModelConfig
from vitrail.model.patches import Size

MODEL = "model."
"""How the names of the model's parameters begin in a learner; settings leave it out."""


class Learner(nn.Module, ABC):
    """A model and everything that is trained with it.

    Every parameter that learns takes part in every forward pass, since ranks wait for its gradient. None is a scalar,
    since shards are parts of it.
    """

    score: ClassVar[str] = "val_accuracy"
    """The figure of an evaluator that decides which weights are best, as it is called in `metrics.jsonl`."""
    higher_is_better: ClassVar[bool] = True
    """Whether more of that figure is better."""

    def __init__(self, model: Model) -> None:
        super().__init__()
        self.model = model

    @abstractmethod
    def forward(self, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        """Return the mean loss of a batch, and sums over its images, whose means are journaled by name."""

    @property
    def saved(self) -> Model:
        """The network that is measured and saved; a learner that trains a student may name its teacher."""
        return self.model

    def before_step(self, step: int, steps: int) -> None:
        """Prepare for update `step`, from 0, of `steps`: a temperature that follows the step."""

    def adjust_gradients(self, step: int, steps: int) -> None:
        """Change the gradients of update `step` before they are clipped: None leaves a weight where it is."""

    def after_step(self, step: int, steps: int) -> None:
        """Follow the weights after update `step`, from 0, of `steps`: a teacher by averaging, a centre."""

    @property
    def divisible(self) -> bool:
        """Whether threads may pass parts of a batch at the same time: nothing is drawn, no buffer is written."""
        return False

    def blocks(self) -> list[nn.Module]:
        """Return the modules along which shards are cut; a learner with another network adds that one's."""
        return [layer.block for layer in self.model.layers() if layer.block is not None]

    def matrices(self) -> dict[str, int]:
        """Name the kernels that are matrices inside blocks, with how many are stacked in each."""
        return {f"{MODEL}{name}": stacked for name, stacked in self.model.matrices().items()}

    def depth_of(self, name: str) -> int:
        """Return the number of a parameter's layer; those outside of the model belong to the last."""
        if name.startswith(MODEL):
            return self.model.depth_of(name.removeprefix(MODEL))
        return len(self.model.layers()) - 1


@dataclass(frozen=True, kw_only=True)
class Task:
    """The task of a learner."""

    preprocessing: Preprocessing
    """How images are prepared for the model."""
    counts: tuple[int, ...] = ()
    """Training images of each class; empty without classes."""
    images: int = 0
    """Training images in an epoch."""
    batch: int = 1
    """Images in an update, over all ranks."""
    seed: int = 0
    """What random choices follow from."""
    ranks: Ranks = field(default_factory=Ranks)
    """Who takes part: sums over all images go through them."""
    threads: int = 1
    """Threads that may share the pass of a learner whose loss needs the whole batch."""


@dataclass(frozen=True, kw_only=True)
class ObjectiveConfig(Tagged, ABC):
    """What is minimised: a family of frozen dataclasses, one for each kind."""

    needs_labels: ClassVar[bool] = True
    """Whether every training image must have a class."""

    @abstractmethod
    def learner(self, model: Model, task: Task) -> Learner:
        """Put a learner around a model, on the device of the model; torch's own generator is seeded by the run."""

    def views(self, model: ModelConfig) -> tuple[View, ...]:  # noqa: ARG002 - for objectives with several
        """Return the views of each image that follow the first, which has the size of the model's images."""
        return ()

    @property
    def summary(self) -> str:
        """The objective's differences from the default, in a few words."""
        return ""

    def flops_factor(self, model: ModelConfig) -> float:  # noqa: ARG002 - for objectives with several views
        """Return how the FLOPs of a step compare with a forward and backward pass of the model over the first view."""
        return 1.0

    def activations_factor(self, model: ModelConfig) -> float:  # noqa: ARG002 - for objectives with several views
        """Return how many times the activations of the model's pass over the first view a step keeps."""
        return 1.0

    def shrunk(self) -> "ObjectiveConfig":
        """Return the objective with heads small enough for a step to take no time."""
        return self

    def check(self, model: ModelConfig, sizes: Sequence[Size]) -> None:
        """Refuse a model, or image sizes in training, for which this cannot be minimised."""
        model.check_patches(drop=0.0, sizes=sizes)

    def check_batch(self, batch: int, *, whole: bool) -> None:
        """Refuse a number of images in an update; with `whole`, each rank passes all of its images at once."""


def make_learner(objective: ObjectiveConfig, model: Model, task: Task, *, seed: int) -> Learner:
    """Make a learner whose own weights follow from a seed, on the model's device, ready to train."""
    device = next(model.parameters()).device
    torch.manual_seed(seed)
    with device:
        return objective.learner(model, task).to(device).train()
