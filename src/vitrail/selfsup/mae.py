"""Masked autoencoders (He et al., 2021): remove most patches, encode the rest, and decode the pixels of the removed.

image -> int(N (1 - rate)) patches of N -> encoder -> decoder with mask tokens -> pixels of the others
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from vitrail.base.errors import ConfigError
from vitrail.base.shapes import PixelBatch
from vitrail.data.augment.mixing import Targets as Indices
from vitrail.data.batch import Batch
from vitrail.data.transforms import normalise
from vitrail.model.config import ViTConfig
from vitrail.model.contract import Model
from vitrail.model.cost import cost
from vitrail.model.embedding import pick
from vitrail.model.family import ModelConfig
from vitrail.model.patches import Size, patch_grid, patchify, size_text
from vitrail.selfsup.decoder import Decoder, Order, Removed, patch_norm
from vitrail.selfsup.masking import draw_noise, image_keys
from vitrail.selfsup.objective import Reconstructing, Reconstruction, SelfSupervisedConfig
from vitrail.selfsup.painting import GREY, denormalise, paste
from vitrail.training.learner import Task


@dataclass(frozen=True, kw_only=True)
class DecoderConfig:
    """The sizes of the decoder; the defaults are the published ones."""

    dim: int = 512
    depth: int = 8
    num_heads: int = 16
    mlp_dim: int = 2048


@dataclass(frozen=True, kw_only=True)
class MAEConfig(SelfSupervisedConfig, kind="mae"):
    """How much is removed, and what decodes it."""

    reconstructs: ClassVar[bool] = True
    rate: float = 0.75
    """Part of each image's patches that are removed."""
    normalised: bool = True
    """Whether the pixels of each patch are predicted without their own mean and deviation."""
    decoder: DecoderConfig = field(default_factory=DecoderConfig)

    def __post_init__(self) -> None:
        """Refuse a rate that removes nothing or everything."""
        super().__post_init__()
        if not 0 < self.rate < 1:
            raise ConfigError(f"rate is {self.rate}, but must be between 0 and 1, such as 0.75.")

    @property
    def summary(self) -> str:
        """How much is removed, and what decodes it."""
        return f"{self.rate:.0%} of patches removed, decoder {self.decoder.dim}x{self.decoder.depth}"

    def flops_factor(self, model: ModelConfig) -> float:
        """Count the share of the encoder that is left, and the decoder over all patches."""
        return 1 - self.rate + cost(self.decoder_of(model)).macs / cost(model).macs

    def decoder_of(self, model: ModelConfig) -> ViTConfig:
        """Return the decoder of a model as a Vision Transformer on the same patches, or refuse the model."""
        own: Any = model
        try:
            return ViTConfig(
                dim=self.decoder.dim,
                depth=self.decoder.depth,
                num_heads=self.decoder.num_heads,
                mlp_dim=self.decoder.mlp_dim,
                patch_size=own.patch_size,
                image_size=model.image_size,
                channels=model.channels,
                num_classes=0,
                pool="mean",
                class_token=own.class_token,
                positions="sincos-2d",
                gelu=own.gelu,
                norm_eps=own.norm_eps,
            )
        except ConfigError as error:
            raise ConfigError(f"the decoder does not fit: {error}") from None

    def check(self, model: ModelConfig, sizes: Sequence[Size]) -> None:
        """Refuse a model whose patches cannot be left out, a decoder that does not fit, and too few patches."""
        model.check_patches(drop=self.rate, sizes=sizes)
        for size in (model.image_size, *sizes):
            rows, columns = model.check_tokens(size)
            if not visible_count(rows * columns, self.rate):
                raise ConfigError(
                    f"a rate of {self.rate:g} removes every one of {rows * columns} patches at {size_text(size)}; "
                    "choose a smaller rate, or smaller patches."
                )
        decoder = self.decoder_of(model)
        if self.normalised and math.prod(decoder.patch_size) * decoder.channels < 2:
            raise ConfigError(
                "a patch of one value has no deviation to divide it by; set `objective.normalised` to false, or choose "
                "larger patches."
            )

    def learner(self, model: Model, task: Task) -> "MaskedAutoencoder":
        """Put the decoder behind a model."""
        return MaskedAutoencoder(model, self, task)


def visible_count(patches: int, rate: float) -> int:
    """Return how many of N patches stay: int(N (1 - rate)), as the published code counts."""
    return int(patches * (1 - rate))


class MaskedAutoencoder(Reconstructing):
    """A model that learns to complete images of which it sees a part."""

    def __init__(self, model: Model, config: MAEConfig, task: Task) -> None:
        super().__init__(model)
        self.config, self.task = config, task
        self.patch_size: Size = model.config.patch_size
        outputs = model.config.channels * self.patch_size[0] * self.patch_size[1]
        self.decoder = Decoder(config.decoder_of(model.config), model.config.dim, outputs)

    def forward(self, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        """Compute the mean squared error of the removed patches."""
        inputs = normalise(batch.images, self.task.preprocessing)
        order = self.order(batch.images, batch.indices, batch.positions)
        predicted = self.predict(inputs, order)
        return self.loss(inputs, order, predicted), {}

    def order(self, images: PixelBatch, indices: Indices, positions: Indices) -> Order:
        """Draw which patches stay: those with the smallest of a random number each."""
        rows, columns = patch_grid((images.shape[2], images.shape[3]), self.patch_size)
        own = image_keys(self.task.seed, "removal", indices=indices, positions=positions, images=self.task.images)
        return draw_noise(own, rows * columns, images.device).argsort(dim=1)

    def predict(self, inputs: Float[Tensor, "batch channel height width"], order: Order) -> Removed:
        """Encode the visible patches, and decode the others."""
        size = (inputs.shape[2], inputs.shape[3])
        kept = order[:, : visible_count(order.shape[1], self.config.rate)]
        other = size != self.task.preprocessing.image_size
        tokens = self.model.encode(inputs, kept=kept, any_size=other).output
        prefix = self.model.config.num_prefix
        if prefix > self.decoder.class_token:  # registers have no place in the decoder
            tokens = torch.cat([tokens[:, : int(self.decoder.class_token)], tokens[:, prefix:]], dim=1)
        return self.decoder(tokens, order, patch_grid(size, self.patch_size))

    def loss(self, inputs: Float[Tensor, "batch channel height width"], order: Order, predicted: Removed) -> Tensor:
        """Return the mean squared error over the pixels of the removed patches."""
        targets = pick(patchify(inputs, self.patch_size), order[:, -predicted.shape[1] :])
        return F.mse_loss(predicted.float(), patch_norm(targets) if self.config.normalised else targets)

    def blocks(self) -> list[nn.Module]:
        """Return the blocks of the encoder and of the decoder."""
        return [*super().blocks(), *self.decoder.encoder.blocks]

    def matrices(self) -> dict[str, int]:
        """Name the kernels of both."""
        return super().matrices() | {f"decoder.{name}": parts for name, parts in self.decoder.matrices().items()}

    @property
    def divisible(self) -> bool:
        """Whether nothing is drawn but what each image's number decides."""
        return not self.model.config.draws

    @torch.no_grad()
    def reconstruct(self, images: PixelBatch, indices: Indices) -> Reconstruction:
        """Remove patches as in the first epoch, and put predictions in their place, at their true contrast."""
        inputs = normalise(images, self.task.preprocessing)
        order = self.order(images, indices, torch.zeros_like(indices))
        predicted = self.predict(inputs, order)
        removed = order[:, -predicted.shape[1] :]
        if self.config.normalised:  # a patch without mean and deviation is shown with those that it had
            truth = pick(patchify(inputs, self.patch_size), removed)
            predicted = predicted * (truth.var(dim=2, keepdim=True) + 1e-6).sqrt() + truth.mean(dim=2, keepdim=True)
        return Reconstruction(
            corrupted=paste(images, self.patch_size, removed, GREY),
            predicted=paste(images, self.patch_size, removed, denormalise(predicted, self.task.preprocessing)),
        )
