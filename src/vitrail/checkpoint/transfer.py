"""A model for another task: a new head, another image size, another patch size (Sec. 3.2)."""

import dataclasses
from typing import Any

import torch
from torch import Tensor

from vitrail.base.errors import CheckpointError, ConfigError, did_you_mean
from vitrail.base.tensors import Spec, TensorSource
from vitrail.checkpoint.contents import Contents, needed_shapes
from vitrail.checkpoint.match import check_match
from vitrail.model.build import as_size
from vitrail.model.family import ModelConfig, Move


def transfer(contents: Contents, overrides: dict[str, Any]) -> Contents:
    """Change a model as asked, and note what that did to its weights.

    `num_classes` starts a new head at zero, `image_size` and `patch_size` resize positions and the patch kernel,
    `representation_size=None` takes the tanh layer away; settings without weights just change.
    """
    old = contents.config
    new = _changed_config(contents, overrides)
    if new == old:
        return contents
    move = new.move(old, contents.tensors)
    contents = _apply(contents, move, new)
    contents = _reset_head(contents, new) if move.new_head else contents
    pixels = contents.preprocessing
    if pixels is not None and new.image_size != old.image_size:
        pixels = dataclasses.replace(pixels, image_size=new.image_size)
    contents = contents.noting(config=new, preprocessing=pixels)
    check_match(needed_shapes(new), contents.tensors, "the requested model", advice="leave out what changes it:")
    return contents


def _changed_config(contents: Contents, overrides: dict[str, Any]) -> ModelConfig:
    old = contents.config
    known = {field.name for field in dataclasses.fields(old)}
    for name in overrides:
        if name not in known:
            raise ConfigError(
                f"a model has no setting {name!r}; it has {', '.join(sorted(known))}.{did_you_mean(name, known)}"
            )
    changes: dict[str, Any] = {
        name: as_size(value) if name in ("image_size", "patch_size") else value for name, value in overrides.items()
    }
    for name, own in old.clashes(changes).items():
        raise CheckpointError(
            f"{name}={changes[name]!r} was requested, but {contents.tensors.origin} has {name}={own!r}; "
            "that is another model, so leave it out or choose another file."
        )
    return dataclasses.replace(old, **changes)


def _apply(contents: Contents, move: Move, new: ModelConfig) -> Contents:
    """Resize what changes its shape and leave behind what the new model does not have."""
    source, needed = contents.tensors, needed_shapes(new)
    specs = {
        name: Spec(needed[name], spec.dtype) if name in move.resized else spec
        for name, spec in source.specs.items()
        if not name.startswith(move.dropped)
    }

    def fetch(name: str) -> Tensor:
        return move.resized[name](source[name]) if name in move.resized else source[name]

    return contents.noting(*move.notes, tensors=TensorSource(origin=source.origin, specs=specs, fetch=fetch))


def _reset_head(contents: Contents, new: ModelConfig) -> Contents:
    """Put a head of zeros in place of one with other classes or another input."""
    source, prefix, classes = contents.tensors, new.module.head_prefix, contents.config.num_classes
    dtype = next(iter(source.specs.values())).dtype
    specs = {name: spec for name, spec in source.specs.items() if not name.startswith(prefix)}
    head = {name: Spec(shape, dtype) for name, shape in needed_shapes(new).items() if name.startswith(prefix)}

    def fetch(name: str) -> Tensor:
        if name not in head:
            return source[name]
        return torch.full(head[name].shape, new.head_bias if name.endswith("bias") else 0.0, dtype=dtype)

    note = f"the head of {classes} classes was taken away."
    if new.num_classes:
        note = f"the head was reset to zero for {new.num_classes} classes; the file has {classes}."
    tensors = TensorSource(origin=source.origin, specs=specs | head, fetch=fetch)
    labels = contents.labels if new.num_classes == classes else None
    return contents.noting(note, tensors=tensors, labels=labels)
