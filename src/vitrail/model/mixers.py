"""The token mixer of a block: self-attention, or one of the others of `mixer_settings.py`."""

from torch import nn

from vitrail.model.attention import SelfAttention, attention_cost
from vitrail.model.config import ViTConfig
from vitrail.model.grouped import GroupedAttention, grouped_cost
from vitrail.model.linear_attention import LinearSelfAttention, linear_cost
from vitrail.model.plain_mixers import make_plain_mixer, plain_cost
from vitrail.model.units import Unit

GROUPED = ("axial", "window", "sparse")


def make_mixer(config: ViTConfig, layer: int) -> nn.Module:
    """Build the token mixer of a block, numbered from 0.

    A block calls it between its first LayerNorm and its first residual (Eq. 2) as `mixer(tokens, first_only=...,
    maps=..., rotation=..., grid=..., merging=...)`: `first_only` needs the first token alone, `maps`, where it is not
    None, asks for A of some heads, `rotation` has the rotary positions of the patches, `grid` is that of the images,
    and `merging`, where it is not None, has the sizes of tokens.
    """
    kind = config.mixer.kind
    if kind in GROUPED:
        return GroupedAttention(config, layer)
    if kind not in ("attention", "linear"):
        return make_plain_mixer(config)
    return (LinearSelfAttention if kind == "linear" else SelfAttention)(
        config.dim,
        config.num_heads,
        dropout=config.dropout,
        attention_dropout=config.attention_dropout,
        relative_tokens=config.num_tokens if config.positions == "relative" else None,
    )


def mixer_cost(config: ViTConfig, layer: int, *, first_only: bool = False) -> Unit:
    """Count the mixer of a block; with `first_only`, only the class token is needed, but all products are counted."""
    kind = config.mixer.kind
    if kind in GROUPED:
        whole = grouped_cost(config, layer)
        kept = attention_cost(config, first_only=True) if first_only else whole
        return Unit(macs=whole.macs, activations=kept.activations)
    if kind == "linear":
        return linear_cost(config, first_only=first_only)
    return attention_cost(config, first_only=first_only) if kind == "attention" else plain_cost(config)
