"""The token mixer of a block: the place for mixers other than self-attention."""

from vitrail.model.attention import SelfAttention
from vitrail.model.config import ViTConfig


def make_mixer(config: ViTConfig, layer: int) -> SelfAttention:  # noqa: ARG001 - for mixers that differ by layer
    """Build the token mixer of a block, numbered from 0.

    A block calls it between its first LayerNorm and its first residual (Eq. 2) as `mixer(tokens, first_only=...,
    maps=...)`: `first_only` needs the first token alone, and `maps`, where it is not None, records A of some heads.
    """
    return SelfAttention(
        config.dim,
        config.num_heads,
        dropout=config.dropout,
        attention_dropout=config.attention_dropout,
        relative_tokens=config.num_tokens if config.positions == "relative" else None,
    )
