"""The model file of a run: weights with labels, preprocessing and where they come from."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import Tensor

from vitrail.base.settings import to_dict
from vitrail.checkpoint.files import describe_model
from vitrail.checkpoint.store import write_store
from vitrail.model.build import build
from vitrail.model.info import ModelInfo
from vitrail.runs.config import RunConfig


def write_model(config: RunConfig, weights: Mapping[str, Tensor], path: Path, provenance: Mapping[str, Any]) -> str:
    """Write weights with labels, preprocessing and where they come from."""
    model = build(config.model, device="meta")
    model.load_state_dict({name: tensor.cpu() for name, tensor in weights.items()}, assign=True)
    model.info = ModelInfo(labels=(config.facts.labels or None) if config.model.num_classes else None)
    parent = {} if config.start is None else {"parent": config.start.digest}
    contents = describe_model(
        model,
        preprocessing=config.preprocessing,
        provenance=dict(provenance) | parent | {"config": to_dict(_without_places(config))},
    )
    return write_store(contents, path)


def _without_places(config: RunConfig) -> RunConfig:
    """Return settings that a model file may contain: the names of data and models, not their folders."""
    data, start, extends = config.data, config.start, config.extends
    return replace(
        config,
        data=replace(data, where=Path(data.where).name, root=data.root and Path(data.root).name),
        start=start and replace(start, path=Path(start.path).name),
        extends=extends and replace(extends, run=Path(extends.run).name),
    )
