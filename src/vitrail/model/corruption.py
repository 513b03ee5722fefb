"""Patch embeddings that are hidden or exchanged inside a pass, between x_p E and the class token (App. B.1.2)."""

from dataclasses import dataclass

from jaxtyping import Float, Int
from torch import Tensor

from vitrail.base.shapes import Patches

SomePatches = Int[Tensor, "batch _"]
"""Numbers of some patches of each image, as many in each."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Corruption:
    """What happens to the embeddings of some patches of each image."""

    mask: Float[Tensor, "1 dim"]
    """The learnable [mask] embedding."""
    masked: SomePatches
    """The patches that it takes the place of."""
    replaced: SomePatches
    """The patches that get the embedding of another one of the same image."""
    sources: SomePatches
    """Which one, for each of these."""


def corrupt(patches: Patches, corruption: Corruption) -> Patches:
    """Hide and exchange embeddings; positions are added later, so that a hidden patch still has its place."""
    dim = patches.shape[2]
    moved = patches.gather(1, _wide(corruption.sources, dim))
    exchanged = patches.scatter(1, _wide(corruption.replaced, dim), moved)
    mask = corruption.mask.to(patches.dtype).expand(*corruption.masked.shape, dim)
    return exchanged.scatter(1, _wide(corruption.masked, dim), mask)


def _wide(numbers: SomePatches, dim: int) -> Int[Tensor, "batch _ dim"]:
    """Repeat the numbers of patches over the values of an embedding."""
    return numbers[:, :, None].expand(-1, -1, dim)
