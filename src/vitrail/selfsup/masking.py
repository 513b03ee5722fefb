"""Which patches of which image are hidden: a pure function of (seed, epoch, image), whichever process works on it.

Of N patches, exactly n = round(rate x N) are corrupted (Python's `round`: a half goes to the even number). Of these,
round(0.8 n) get the [mask]; of the rest, half get the embedding of another patch of the same image, and half stay as
they are; one that is left over by halving is exchanged (App. B.1.2).
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from vitrail.base.errors import ConfigError
from vitrail.base.seeds import Keys, key, keys, uniform
from vitrail.data.augment.mixing import Targets as Indices
from vitrail.model.corruption import SomePatches

MASKED = 0.8
"""Share of the corrupted patches that get the [mask]; the rest is halved between exchanged and left."""


@dataclass(frozen=True, kw_only=True)
class Counts:
    """How many patches of an image get what."""

    corrupted: int
    masked: int
    replaced: int

    @property
    def left(self) -> int:
        """Corrupted patches that stay as they are."""
        return self.corrupted - self.masked - self.replaced


def corruption_counts(patches: int, rate: float) -> Counts:
    """Count what is corrupted in an image of N patches, by the rule above."""
    corrupted = hidden_count(patches, rate)
    masked = round(MASKED * corrupted)
    return Counts(corrupted=corrupted, masked=masked, replaced=(corrupted - masked + 1) // 2)


def hidden_count(patches: int, rate: float) -> int:
    """Return round(rate x N), or refuse a rate that hides nothing or everything of an image."""
    hidden = round(rate * patches)
    if not 0 < hidden < patches:
        what = "no patch" if hidden <= 0 else "every patch"
        raise ConfigError(
            f"a rate of {rate:g} hides {what} of {patches}; choose a rate between 0 and 1, or smaller patches."
        )
    return hidden


@dataclass(frozen=True, kw_only=True, eq=False)
class Drawn:
    """The corrupted patches of each image of a batch, by number."""

    corrupted: SomePatches
    """All of them: the masked, then the replaced, then those that are left."""
    masked: SomePatches
    replaced: SomePatches
    sources: SomePatches
    """The patch whose embedding each of the replaced gets: another one of the same image."""


def image_keys(seed: int, purpose: str, *, indices: Indices, positions: Indices, images: int) -> Keys:
    """Return a key for each image of a batch: `images` are those of an epoch, `positions` those in the stream."""
    epochs = positions.cpu().numpy() // max(images, 1)
    return keys(key(seed, purpose), epochs, indices.cpu().numpy())


def draw_corruption(image_keys: Keys, patches: int, rate: float, device: torch.device | str = "cpu") -> Drawn:
    """Draw the patches to corrupt, and where exchanged embeddings come from."""
    counts = corruption_counts(patches, rate)
    draws = uniform(image_keys, patches + counts.replaced)
    order = draws[:, :patches].argsort(axis=1, kind="stable")
    replaced = order[:, counts.masked : counts.masked + counts.replaced]
    steps = 1 + (draws[:, patches:] * (patches - 1)).astype(np.int64)
    corrupted = torch.from_numpy(order[:, : counts.corrupted]).to(device)
    return Drawn(
        corrupted=corrupted,
        masked=corrupted[:, : counts.masked],
        replaced=corrupted[:, counts.masked : counts.masked + counts.replaced],
        sources=torch.from_numpy((replaced + steps) % patches).to(device),
    )


def draw_noise(image_keys: Keys, patches: int, device: torch.device | str = "cpu") -> Float[Tensor, "batch patch"]:
    """Draw a number in [0, 1) for each patch, by whose order patches are kept or removed."""
    return torch.from_numpy(uniform(image_keys, patches).astype(np.float32)).to(device)
