"""Masked patch prediction (Sec. 4.6, App. B.1.2): corrupt patch embeddings, and predict the patches from the outputs.

image -> x_p E -> some hidden, exchanged or left -> encoder -> Linear -> colours of the corrupted patches
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, get_args

import torch
from torch import Tensor, nn

from vitrail.base.errors import ConfigError, did_you_mean
from vitrail.base.products import Linear
from vitrail.base.shapes import PixelBatch
from vitrail.data.augment.mixing import Targets as Indices
from vitrail.data.batch import Batch
from vitrail.data.transforms import normalise
from vitrail.model.contract import Model
from vitrail.model.corruption import Corruption
from vitrail.model.embedding import pick
from vitrail.model.family import ModelConfig
from vitrail.model.patches import Size, patch_grid, patchify
from vitrail.selfsup.masking import Drawn, corruption_counts, draw_corruption, image_keys
from vitrail.selfsup.objective import Reconstructing, Reconstruction, SelfSupervisedConfig
from vitrail.selfsup.painting import GREY, paste
from vitrail.selfsup.targets import TargetName, make_target
from vitrail.training.learner import Task


@dataclass(frozen=True, kw_only=True)
class MaskedPatchConfig(SelfSupervisedConfig, kind="masked-patch"):
    """How much is hidden, and what is predicted of it."""

    reconstructs: ClassVar[bool] = True
    rate: float = 0.5
    """Part of each image's patches that are corrupted."""
    target: TargetName = "mean-colour"
    """What is predicted: the mean colour in 3 bits a channel, a 4x4 down-sized patch in 3 bits, or every pixel (L2)."""

    def __post_init__(self) -> None:
        """Refuse what nothing can be learned from."""
        super().__post_init__()
        if not 0 < self.rate < 1:
            raise ConfigError(f"rate is {self.rate}, but must be between 0 and 1, such as 0.5.")
        if self.target not in get_args(TargetName):
            known = get_args(TargetName)
            near = did_you_mean(str(self.target), known)
            raise ConfigError(f"target is {self.target!r}, but must be one of {', '.join(known)}.{near}")

    @property
    def summary(self) -> str:
        """How much is hidden, and what is predicted."""
        return f"{self.rate:.0%} of patches corrupted, {self.target} predicted"

    def check(self, model: ModelConfig, sizes: Sequence[Size]) -> None:
        """Refuse a model without patches of its own pixels, and images of too few patches."""
        model.check_patches(drop=0.0, sizes=sizes)
        for rows, columns in (model.check_tokens(size) for size in (model.image_size, *sizes)):
            corruption_counts(rows * columns, self.rate)

    def learner(self, model: Model, task: Task) -> "MaskedPatches":
        """Put the mask and the predictor around a model."""
        return MaskedPatches(model, self, task)


class MaskedPatches(Reconstructing):
    """A model that learns to predict corrupted patches."""

    def __init__(self, model: Model, config: MaskedPatchConfig, task: Task) -> None:
        super().__init__(model)
        self.config, self.task = config, task
        self.patch_size, dim = model.config.patch_size, model.config.dim
        self.target = make_target(config.target, model.config.channels, self.patch_size)
        self.mask = nn.Parameter(torch.empty(1, dim))
        self.predictor = Linear(dim, self.target.outputs)
        nn.init.normal_(self.mask, std=0.02)
        nn.init.xavier_uniform_(self.predictor.weight)
        nn.init.zeros_(self.predictor.bias)

    def forward(self, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        """Compute the loss of the corrupted patches, and for colours count those that are right."""
        drawn = self.draw(batch.images, batch.indices, batch.positions)
        predicted = self.predict(batch.images, drawn)
        values = self.target.values(batch.images, normalise(batch.images, self.task.preprocessing))
        targets = values[torch.arange(len(batch), device=values.device)[:, None], drawn.corrupted]
        loss, right = self.target.loss(predicted, targets)
        return loss, {} if right is None else {"patch_accuracy": right}

    def draw(self, images: PixelBatch, indices: Indices, positions: Indices) -> Drawn:
        """Draw the corrupted patches of each image of a batch."""
        rows, columns = patch_grid((images.shape[2], images.shape[3]), self.patch_size)
        chosen = image_keys(self.task.seed, "corruption", indices=indices, positions=positions, images=self.task.images)
        return draw_corruption(chosen, rows * columns, self.config.rate, images.device)

    def predict(self, images: PixelBatch, drawn: Drawn) -> Tensor:
        """Predict the corrupted patches from their outputs."""
        corruption = Corruption(mask=self.mask, masked=drawn.masked, replaced=drawn.replaced, sources=drawn.sources)
        other = tuple(images.shape[2:]) != self.task.preprocessing.image_size
        inputs = normalise(images, self.task.preprocessing)
        tokens = self.model.encode(inputs, corruption=corruption, any_size=other).output
        return self.predictor(pick(tokens[:, self.model.config.num_prefix :], drawn.corrupted))

    @property
    def divisible(self) -> bool:
        """Whether nothing is drawn but what each image's number decides."""
        return not self.model.config.draws

    @torch.no_grad()
    def reconstruct(self, images: PixelBatch, indices: Indices) -> Reconstruction:
        """Corrupt images as in the first epoch, and put predictions in the place of corrupted patches."""
        drawn = self.draw(images, indices, torch.zeros_like(indices))
        moved = pick(patchify(images.float(), self.patch_size), drawn.sources)
        shown = paste(images, self.patch_size, drawn.replaced, moved)
        pixels = self.target.paint(self.predict(images, drawn), self.task.preprocessing)
        return Reconstruction(
            corrupted=paste(shown, self.patch_size, drawn.masked, GREY),
            predicted=paste(images, self.patch_size, drawn.corrupted, pixels),
        )
