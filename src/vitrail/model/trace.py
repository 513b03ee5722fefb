"""What one pass through a model computes on the way, by name."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from torch import Tensor

from vitrail.base.errors import ConfigError
from vitrail.base.shapes import AttentionMap, Logits, Patches, Representation, Tokens

Selection = Literal["all"] | Sequence[int] | None
"""Blocks or heads by number, negative ones from the end; "all"; or None."""


@dataclass(frozen=True, kw_only=True)
class Trace:
    """The intermediates of one pass of a Vision Transformer or a hybrid."""

    feature_maps: dict[str, Tensor] = field(default_factory=dict)
    """A hybrid's feature maps, by the name of the module; empty for a pure Vision Transformer."""
    patches: Patches
    """x_p E, before the class token and positions."""
    embedded: Tokens
    """z_0 (Eq. 1)."""
    blocks: tuple[Tokens, ...]
    """z_1 ... z_L (Eq. 3)."""
    attention: dict[int, AttentionMap]
    """A of the asked blocks and heads (Eq. 6), by the number of the block."""
    encoded: Tokens
    """The tokens after the last LayerNorm (Eq. 4 for the class token)."""
    representation: Representation
    """What the last linear layer sees."""
    logits: Logits
    """What `model(images)` returns."""


@dataclass(frozen=True, kw_only=True)
class ResNetTrace:
    """The intermediates of one pass of a ResNet."""

    feature_maps: dict[str, Tensor]
    """The output of the root and of every unit, by the name of the module."""
    representation: Representation
    """What the last linear layer sees."""
    logits: Logits
    """What `model(images)` returns."""


def select(asked: Selection, count: int, what: str) -> list[int]:
    """Turn a selection into numbers from 0 to count - 1, in the order asked."""
    if asked is None:
        return []
    if isinstance(asked, str):
        if asked != "all":
            raise ConfigError(f"{what} to trace are given as {asked!r}; give 'all', a list of numbers, or None.")
        return list(range(count))
    wrong = [number for number in asked if not -count <= number < count]
    if wrong:
        raise ConfigError(
            f"asked to trace {what} {', '.join(map(str, wrong))}, but there are {count}: 0 to {count - 1}, "
            f"or {-count} to -1 from the end."
        )
    return [number % count for number in asked]
