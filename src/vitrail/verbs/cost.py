"""What a model costs, without its weights."""

from typing import Any

from vitrail.model.build import config_of
from vitrail.model.contract import Model
from vitrail.model.cost import Cost
from vitrail.model.cost import cost as cost_of
from vitrail.model.family import ModelConfig


def cost(model: str | ModelConfig | Model, **settings: Any) -> Cost:
    """Count parameters, tokens, multiply-accumulates and activations of one image.

    `model` is a name, a config or a model; `settings` are fields of its config to change first. Nothing is allocated
    and nothing computed.

    >>> vitrail.cost("B/16", image_size=384).macs / 1e9
    55.4...
    >>> vitrail.cost("B/16")
                  of one image  note
    parameters      86,567,656  86.57 M
    tokens                 197
    MACs        17,563,...
    """
    return cost_of(config_of(model, **settings))
