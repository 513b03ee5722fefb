"""The network of a classifier: the engine that computes, and what is known about it."""

import logging
import os
from dataclasses import replace

import torch

from vitrail.base.errors import ConfigError
from vitrail.checkpoint.files import head_notes
from vitrail.model.contract import Model
from vitrail.model.info import ModelInfo
from vitrail.model.patches import Size
from vitrail.runtime.choice import EngineChoice
from vitrail.runtime.engine import Engine, torch_engine
from vitrail.runtime.exported import open_exported
from vitrail.runtime.graph_engine import exported_engine
from vitrail.runtime.make import make_engine
from vitrail.runtime.zeroshot import TextEmbeddings, read_text_embeddings, zero_shot

BATCH = {"cpu": 8}
"""Images that go through the model at once; 64 on any other device."""

_log = logging.getLogger("vitrail")


def graph_of(
    path: str | os.PathLike[str],
    choice: EngineChoice,
    *,
    image_size: int | Size | None,
    num_heads: int | None,
    architecture: str | None,
) -> tuple[Engine, ModelInfo]:
    """Open an exported file; settings of weights are refused, since a graph has its own."""
    for name, value in (("image_size", image_size), ("num_heads", num_heads)):
        if value is not None:
            raise ConfigError(f"{path} is a graph that was exported with its settings; leave out `{name}`.")
    return exported_engine(open_exported(path, choice, threads=torch.get_num_threads(), architecture=architecture))


def engine_of(
    model: Model | Engine,
    batch: int | None,
    choice: EngineChoice,
    text_embeddings: TextEmbeddings | str | os.PathLike[str] | None,
    called: str,
    *,
    owned: bool = False,
) -> tuple[Engine, ModelInfo, list[str]]:
    """Return what computes, what is known about it, and what the user should know, a sentence each."""
    texts = text_embeddings
    if isinstance(texts, str | os.PathLike):
        texts = read_text_embeddings(texts)
    if isinstance(model, Engine):
        if choice.given:
            raise ConfigError(
                "an engine computes as it does, so `engine` and `precision` are not for it; leave them out."
            )
        return (model if texts is None else zero_shot(model, None, texts, called)), ModelInfo(), []
    own, guessed = torch_engine(model)
    engine: Engine = own
    if choice.given:
        size = batch or usual_batch(own.device)
        engine = make_engine(own, choice, batch=size, note=_log.warning, owned=owned)
    if texts is None:
        return engine, model.info, [*guessed, *head_notes(model)]
    info = replace(model.info, labels=texts.names)
    return zero_shot(engine, model.config, texts, called), info, list(guessed)


def usual_batch(device: torch.device) -> int:
    """Return how many images go through a network at once, unless the user says."""
    return BATCH.get(device.type, 64)
