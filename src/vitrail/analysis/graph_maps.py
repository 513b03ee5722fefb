"""Where attention goes in an exported file, by its own outputs: one block's, or all blocks multiplied together.

The graph returns `attention` (batch, block, head, query, key) of the blocks that it was exported with, and `pooling`
(batch, token), the share of each token in what the head reads.
"""

from vitrail.analysis.cells import HeatMaps
from vitrail.analysis.rollout import mix, on_grid, rollout
from vitrail.base.errors import ConfigError
from vitrail.base.shapes import PixelBatch
from vitrail.runtime.card import Card
from vitrail.runtime.engine import Engine
from vitrail.runtime.graph_engine import GraphEngine


def maps_card(engine: Engine) -> Card | None:
    """Return the facts about a graph with attention maps; None for any other engine."""
    card = engine.card if isinstance(engine, GraphEngine) else None
    return None if card is None or card.grid is None or not card.attention_blocks else card


def has_all_blocks(card: Card) -> bool:
    """Return whether a graph has the maps of every block, which rollout needs."""
    return len(card.attention_blocks) == card.attention_shape[0]


def check_block(card: Card, block: int) -> int:
    """Return where the maps of a block are in the output; refuse a block that was not exported."""
    number = block % card.attention_shape[0]
    if number not in card.attention_blocks:
        blocks = "block" if len(card.attention_blocks) == 1 else "blocks"
        listed = ", ".join(map(str, card.attention_blocks))
        raise ConfigError(
            f"`layer` is {block}, but the file has attention maps of {blocks} {listed} only; choose one of them, or "
            "export the model again with that block in `attention`."
        )
    return card.attention_blocks.index(number)


def graph_attention_heat(engine: GraphEngine, pixels: PixelBatch, *, block: int, head: int | None) -> HeatMaps:
    """Return what the pooled token looks at in one block, through one head or the mean over all heads."""
    card = _card(engine)
    maps, pooling = engine.some_outputs(("attention", "pooling"), pixels)
    maps = maps[:, check_block(card, block)]
    rows = maps.mean(dim=1) if head is None else maps[:, head]
    return on_grid(mix(pooling, rows), card.prefix, card.grid or (0, 0))


def graph_rollout_heat(engine: GraphEngine, pixels: PixelBatch) -> HeatMaps:
    """Return how much of each patch reaches the pooled token through all blocks."""
    card = _card(engine)
    maps, pooling = engine.some_outputs(("attention", "pooling"), pixels)
    flow = rollout(list(maps.mean(dim=2).unbind(dim=1)))
    return on_grid(mix(pooling, flow), card.prefix, card.grid or (0, 0))


def _card(engine: GraphEngine) -> Card:
    card = maps_card(engine)
    if card is None:
        raise ConfigError("the file has no attention maps; export the model again with `attention`.")
    return card
