"""The ways to ask a network what it looked at, which of them a model has a use for, and one call for all of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal, get_args

import torch
from jaxtyping import Float
from torch import Tensor

from vitrail.analysis.cam import grad_cam_heat
from vitrail.analysis.cells import Cells, HeatMaps, cells_for, mean_colour
from vitrail.analysis.gradients import STEPS, integrated_gradients
from vitrail.analysis.graph_maps import check_block, graph_attention_heat, graph_rollout_heat, has_all_blocks, maps_card
from vitrail.analysis.occlusion import occlusion
from vitrail.analysis.relevance import Classes, relevance_heat
from vitrail.analysis.rollout import attention_heat, rollout_heat
from vitrail.base.errors import ConfigError, did_you_mean
from vitrail.base.numbers import MANY, check_whole
from vitrail.base.shapes import PixelBatch
from vitrail.model.cost import cost
from vitrail.model.family import ModelConfig
from vitrail.runtime.engine import Engine, TorchEngine
from vitrail.runtime.graph_engine import GraphEngine

Method = Literal["attention", "rollout", "gradient-attention", "integrated-gradients", "occlusion", "grad-cam"]
METHODS: tuple[Method, ...] = get_args(Method)

_WITH_ATTENTION: tuple[Method, ...] = ("attention", "rollout", "gradient-attention")
_SIGNED: tuple[Method, ...] = ("integrated-gradients", "occlusion")
_CLASSLESS: tuple[Method, ...] = ("attention", "rollout")


@dataclass(frozen=True, kw_only=True, eq=False)
class HeatBatch:
    """One map for each image."""

    maps: HeatMaps
    """The maps, on the grid of the method: patches, pixels, or cells of a feature map."""
    errors: Float[Tensor, "batch"] | None = None
    """Of integrated gradients, by how much the sum of each map misses what it should be."""


@dataclass(frozen=True, kw_only=True)
class MethodSettings:
    """What some of the methods let choose."""

    layer: int = -1
    """With `attention`: the block, from 0; negative ones count from the last."""
    head: int | None = None
    """With `attention`: the head, from 0; None takes the mean over all heads."""
    steps: int = STEPS
    """With `integrated-gradients`: points on the path from the mean colour to the image."""

    def __post_init__(self) -> None:
        """Refuse a path without points, and what cannot number a block or a head."""
        check_whole("steps", self.steps, most=10_000)
        for name, number in (("layer", self.layer), ("head", self.head)):
            if number is not None:
                check_whole(name, number, least=-MANY)


def model_config(engine: Engine) -> ModelConfig | None:
    """Return the settings of the model behind an engine; None for an engine of another kind."""
    return engine.model.config if isinstance(engine, TorchEngine) else None


def applicable(engine: Engine) -> tuple[Method, ...]:
    """Return the methods that a network has a use for."""
    config, card = model_config(engine), maps_card(engine)
    if card is not None:
        return ("attention", "rollout", "occlusion") if has_all_blocks(card) else ("attention", "occlusion")
    if config is None:
        return ("occlusion",)
    attends = config.attention_shape[0] > 0
    return tuple(
        method
        for method in METHODS
        if (attends or method not in _WITH_ATTENTION) and (config.feature_grid is not None or method != "grad-cam")
    )


COVERING = 5e9
"""The most MACs for covering every part of an image once: a tenth of a second or so on two cores."""
FEWEST_CELLS = 3
"""Rows of the coarsest feature map on which Grad-CAM is of use: with 2x2 it was no better than random maps."""


def best_method(engine: Engine) -> tuple[Method, str]:
    """Return the method that `auto` stands for, and a sentence with the reason."""
    if is_small(engine):
        parts = len(cells_of(engine))
        return "occlusion", f"the model is small, so each of {parts} parts of the image is covered in turn."
    return quick_method(engine)


def is_small(engine: Engine) -> bool:
    """Return whether every part of an image can be covered in no time."""
    config = model_config(engine)
    return config is not None and len(cells_of(engine)) * _macs(config) <= COVERING


@cache
def _macs(config: ModelConfig) -> int:
    """Count a pass, once for each model: a server asks with every image."""
    return cost(config).macs


def quick_method(engine: Engine) -> tuple[Method, str]:
    """Return the method for a large model or many images, in one pass where the network lets it, and the reason."""
    methods, config = applicable(engine), model_config(engine)
    if "gradient-attention" in methods:
        return "gradient-attention", "the model has attention, so maps are attention weighted by gradients."
    if config is not None and config.feature_grid is not None:
        rows, columns = config.feature_grid
        if min(rows, columns) >= FEWEST_CELLS:
            return "grad-cam", f"a {config.noun} has no attention, so maps are Grad-CAM's on its last feature map."
        why = f"the last feature map of the {config.noun} has only {rows}x{columns} cells"
    else:
        why = "nothing is known of what is inside" if maps_card(engine) is None else "a graph has no gradients"
    return "occlusion", f"{why}, so parts of the image are covered one after the other."


def check_method(method: Method, engine: Engine) -> None:
    """Refuse a method that the network has no use for."""
    if method not in METHODS:
        hint = did_you_mean(method, (*METHODS, "auto"))
        raise ConfigError(f"method is {method!r}, but must be auto or one of {', '.join(METHODS)}.{hint}")
    methods, config = applicable(engine), model_config(engine)
    if method not in methods:
        if isinstance(engine, GraphEngine):
            raise ConfigError(_not_of_graph(method, engine, methods))
        kind = "this engine" if config is None else f"a {config.noun}"
        why = "has no attention" if method in _WITH_ATTENTION else "has no feature map of convolutions"
        raise ConfigError(f"{method} is not for {kind}, which {why}; choose one of {', '.join(methods)}.")


def _not_of_graph(method: Method, engine: GraphEngine, methods: tuple[Method, ...]) -> str:
    """Say why a graph cannot be explained in a way, and what to do."""
    choices = ", ".join(methods)
    card = engine.card
    if method not in ("attention", "rollout"):
        return f"{method} needs gradients, which a graph does not have; choose one of {choices}, or give the weights."
    if card is not None and card.attention_shape[0]:
        return (
            f"{method} needs the attention maps of {'every block' if method == 'rollout' else 'a block'} as an output; "
            f"export the model again with `attention=all`, or choose one of {choices}."
        )
    return f"{method} needs attention maps, which the graph does not have; choose one of {choices}."


def check_settings(settings: MethodSettings, methods: Sequence[Method], engine: Engine) -> None:
    """Refuse settings that none of the methods reads, and a block or head that is not there."""
    if "integrated-gradients" not in methods and settings.steps != STEPS:
        raise ConfigError("`steps` are of integrated gradients alone; leave them out, or give that `method`.")
    card = maps_card(engine)
    facts = model_config(engine) or card
    if facts is None or "attention" not in methods:
        if (settings.layer, settings.head) != (-1, None):
            attends = "attention" in applicable(engine)
            remedy = "give the `method` attention beside them" if attends else "leave them out: the model has none"
            raise ConfigError(f"`layer` and `head` are of attention alone; {remedy}.")
        return
    for name, number, count in zip(
        ("layer", "head"), (settings.layer, settings.head), facts.attention_shape, strict=True
    ):
        if number is not None and not -count <= number < count:
            raise ConfigError(f"{name} is {number}, but the model has {count}: 0 to {count - 1}.")
    if card is not None:
        check_block(card, settings.layer)


def is_signed(method: Method) -> bool:
    """Return whether values below 0 of a map speak against the class."""
    return method in _SIGNED


def needs_class(method: Method) -> bool:
    """Return whether the map depends on the class."""
    return method not in _CLASSLESS


def cells_of(engine: Engine) -> Cells:
    """Return the cells in which the input of a network is covered."""
    size = engine.preprocessing.image_size
    card = engine.card if isinstance(engine, GraphEngine) else None
    if card is not None and card.grid is not None:
        return Cells(image_size=size, grid=card.grid)
    return cells_for(model_config(engine), size)


def probabilities(engine: Engine, pixels: PixelBatch) -> Float[Tensor, "batch class"]:
    """Return the softmax probability of every class."""
    return engine.logits(pixels).float().softmax(dim=1)


def heat_maps(
    method: Method, engine: Engine, pixels: PixelBatch, classes: Classes, settings: MethodSettings | None = None
) -> HeatBatch:
    """Ask a network what it looked at for one class of each image."""
    settings = settings or MethodSettings()
    if isinstance(engine, GraphEngine) and method == "attention":
        return HeatBatch(maps=graph_attention_heat(engine, pixels, block=settings.layer, head=settings.head))
    if isinstance(engine, GraphEngine) and method == "rollout":
        return HeatBatch(maps=graph_rollout_heat(engine, pixels))
    if method == "occlusion" or not isinstance(engine, TorchEngine):
        return HeatBatch(maps=_occlusion_heat(engine, pixels, classes))
    model, images = engine.model, engine.inputs(pixels)
    classes = classes.to(images.device)
    match method:
        case "attention":
            maps = attention_heat(model, images, block=settings.layer, head=settings.head)
        case "rollout":
            maps = rollout_heat(model, images)
        case "gradient-attention":
            maps = relevance_heat(model, images, classes)
        case "grad-cam":
            maps = grad_cam_heat(model, images, classes)
        case "integrated-gradients":
            attributions, errors = integrated_gradients(model, images, classes, steps=settings.steps)
            return HeatBatch(maps=attributions.sum(dim=1).cpu(), errors=errors.cpu())
    return HeatBatch(maps=maps.float().cpu())


def _occlusion_heat(engine: Engine, pixels: PixelBatch, classes: Classes) -> HeatMaps:
    cells, colour = cells_of(engine), mean_colour(engine.preprocessing)
    maps = [
        occlusion(lambda batch: probabilities(engine, batch), image, [number], cells=cells, colour=colour)[0]
        for image, number in zip(pixels, classes.tolist(), strict=True)
    ]
    return torch.stack(maps).cpu()
