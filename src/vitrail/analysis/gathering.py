"""What a network does with images, gathered batch by batch: attention is reduced as soon as it is computed."""

from collections.abc import Iterable
from dataclasses import dataclass, field

import torch
from jaxtyping import Float
from torch import Tensor

from vitrail.analysis.distance import attention_distance, patch_distances
from vitrail.analysis.entropy import attention_entropy
from vitrail.analysis.units import unit_peaks
from vitrail.base.shapes import AttentionMap
from vitrail.model.contract import Model
from vitrail.model.family import ModelConfig
from vitrail.model.trace import Reduce, Selection, select

SomeImages = Float[Tensor, "_ channel height width"]
"""A batch of any length."""
PLACES = 16
"""Places of each image whose features are kept, evenly spread: enough for the rank of a layer."""
BYTES = 2**28
"""Memory for attention maps and for layers of one batch."""
MOST_IMAGES = 32


@dataclass(frozen=True, kw_only=True)
class AttentionChoice:
    """Which attention maps to look at."""

    blocks: tuple[int, ...] = ()
    heads: tuple[int, ...] = ()


@dataclass(kw_only=True, eq=False)
class Gathered:
    """The figures of all images, one batch after the other in each list."""

    layers: tuple[str, ...]
    """The name of each layer from the input on, the head left out."""
    attention: list[Float[Tensor, "2 block batch head"]] = field(default_factory=list)
    """Distance in pixels and entropy in nats; empty for a network without attention."""
    means: list[list[Float[Tensor, "batch width"]]] = field(default_factory=list)
    """Each layer's features, as a mean over the places of an image."""
    places: list[list[Float[Tensor, "row width"]]] = field(default_factory=list)
    """Each layer's features at a few places of each image."""
    lengths: list[list[Float[Tensor, "batch place"]]] = field(default_factory=list)
    """The length of each layer's features at every place."""
    units: dict[str, list[Float[Tensor, "2 unit"]]] = field(default_factory=dict)
    """Of hidden units: the largest activation, and the mean square."""
    pooled: dict[str, list[Float[Tensor, "batch width"]]] = field(default_factory=dict)
    """What the head sees or could see: the representation, the class token, the mean over patches."""


def choose_attention(config: ModelConfig, blocks: Selection = "all", heads: Selection = "all") -> AttentionChoice:
    """Choose blocks and heads of a network, and refuse those that it does not have."""
    depth, num_heads = config.attention_shape
    if not depth:
        return AttentionChoice()
    chosen = AttentionChoice(
        blocks=tuple(select(blocks, depth, "blocks")), heads=tuple(select(heads, num_heads, "heads"))
    )
    return chosen if chosen.blocks and chosen.heads else AttentionChoice()


def images_at_once(config: ModelConfig, layers: int, width: int) -> int:
    """Return how many images go through together: their layers, and A of one block with its softmax, fit in memory."""
    tokens = config.sequence or 64 * 64  # a feature map of a ResNet has no tokens, but its first one as many places
    values = max(3 * config.attention_shape[1] * tokens**2, layers * tokens * width)
    return min(max(BYTES // (4 * values), 1), MOST_IMAGES)


@torch.inference_mode()
def gather(model: Model, batches: Iterable[SomeImages], choice: AttentionChoice) -> Gathered:
    """Run images through a network once, and keep what the panels need; A of one block at a time is in memory."""
    config = model.config
    names = tuple(layer.name for layer in model.layers()[:-1])
    gathered = Gathered(layers=names)
    distances = patch_distances(config.grid, config.cell_size) if choice.blocks else None

    def reduce(attention: AttentionMap) -> Tensor:
        assert distances is not None  # noqa: S101 - only called where blocks are requested
        return torch.stack([attention_distance(attention, distances), attention_entropy(attention)]).float().cpu()

    for images in batches:  # a function each, so that the layers of a batch are gone before the next
        _add(gathered, model, images, choice, reduce)
    return gathered


def _add(gathered: Gathered, model: Model, images: SomeImages, choice: AttentionChoice, reduce: Reduce) -> None:
    """Run one batch through a network."""
    encoded = model.encode(
        images,
        layers="all",
        attention=list(choice.blocks) or None,
        heads=list(choice.heads),
        reduce=reduce,
        units=unit_peaks,
    )
    if choice.blocks:
        gathered.attention.append(torch.stack([encoded.attention[block] for block in choice.blocks], dim=1))
    features = [_places(encoded.layers[number], model.config.num_prefix) for number in sorted(encoded.layers)]
    gathered.means.append([places.mean(dim=1).float().cpu() for places in features])
    gathered.places.append([_spread(places).flatten(0, 1).float().cpu() for places in features])
    gathered.lengths.append([places.norm(dim=2).float().cpu() for places in features])
    for name, peaks in encoded.units.items():
        gathered.units.setdefault(name, []).append(peaks)
    pooled = {"representation": model.represent(encoded.output)} | model.poolings(encoded.output)
    for name, values in pooled.items():
        gathered.pooled.setdefault(name, []).append(values.float().cpu())


def _places(output: Tensor, prefix: int) -> Float[Tensor, "batch place width"]:
    """Return the features at each place: the tokens of patches, or the cells of a feature map."""
    return output[:, prefix:] if output.ndim == 3 else output.flatten(2).mT


def _spread(places: Float[Tensor, "batch place width"]) -> Float[Tensor, "batch some width"]:
    count = places.shape[1]
    return places[:, torch.linspace(0, count - 1, min(count, PLACES)).round().long().to(places.device)]
