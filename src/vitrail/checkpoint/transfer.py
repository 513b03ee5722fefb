"""A model for another task: a new head, another image size, another patch size (Sec. 3.2)."""

import dataclasses
import re
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from vitrail.base.errors import CheckpointError, ConfigError, did_you_mean
from vitrail.base.tensors import Spec, TensorSource
from vitrail.checkpoint.contents import Contents, needed_shapes
from vitrail.checkpoint.match import check_match
from vitrail.model.build import as_size
from vitrail.model.config import ViTConfig
from vitrail.model.contract import ModelConfig
from vitrail.model.patches import Size, size_text
from vitrail.model.positions import resize_axis, resize_positions, resize_relative

_POSITIONS = re.compile(r"(embedding|encoder)\.positions\.(\d+\.)?(?P<part>table|x|y)$")
# Fields that another number of, or place for, tensors would follow from.
_FIXED = (
    "dim",
    "depth",
    "num_heads",
    "mlp_dim",
    "channels",
    "backbone",
    "positions",
    "position_placement",
    "blocks",
    "width",
)


def transfer(contents: Contents, overrides: dict[str, Any]) -> Contents:
    """Change a model as asked, and note what that did to its weights.

    `num_classes` starts a new head at zero, `image_size` and `patch_size` resize positions and the patch kernel,
    `representation_size=None` takes the tanh layer away; settings without weights just change.
    """
    old = contents.config
    new = _changed_config(contents, overrides)
    if new == old:
        return contents
    contents = _resize_image(contents, new) if isinstance(new, ViTConfig) else contents
    contents = _change_head(contents, new)
    pixels = contents.preprocessing
    if pixels is not None and new.image_size != old.image_size:
        pixels = dataclasses.replace(pixels, image_size=new.image_size)
    contents = contents.noting(config=new, preprocessing=pixels)
    check_match(
        needed_shapes(new), contents.tensors, "the model that was asked for", advice="leave out what changes it:"
    )
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
        name: as_size(value) if name.endswith("_size") and name != "representation_size" else value
        for name, value in overrides.items()
    }
    for name in _FIXED:
        if name in changes and changes[name] != getattr(old, name, None):
            has = getattr(old, name, None)
            raise CheckpointError(
                f"{name}={changes[name]!r} was asked for, but {contents.tensors.origin} has {name}={has!r}; "
                "that is another model, so leave it out or choose another file."
            )
    return dataclasses.replace(old, **changes)


def _change_head(contents: Contents, new: ModelConfig) -> Contents:
    """Put a head of zeros in place of one with other classes or another input."""
    old = contents.config
    dropped = _representation(old) is not None and _representation(new) is None
    specs = dict(contents.tensors.specs)
    notes = []
    if dropped:
        specs = {name: spec for name, spec in specs.items() if not name.startswith("head.representation.")}
        notes.append(f"the representation layer of {_representation(old)} units was taken away.")
    if new.num_classes == old.num_classes and not dropped:
        return contents
    dtype = next(iter(specs.values())).dtype
    prefix = new.module.head_prefix
    specs = {name: spec for name, spec in specs.items() if not name.startswith(prefix)}
    head = {name: Spec(shape, dtype) for name, shape in needed_shapes(new).items() if name.startswith(prefix)}
    source = contents.tensors

    def fetch(name: str) -> Tensor:
        if name not in head:
            return source[name]
        return torch.full(head[name].shape, new.head_bias if name.endswith("bias") else 0.0, dtype=dtype)

    if new.num_classes:
        notes.append(f"the head was reset to zero for {new.num_classes} classes; the file has {old.num_classes}.")
    else:
        notes.append(f"the head of {old.num_classes} classes was taken away.")
    tensors = TensorSource(origin=source.origin, specs=specs | head, fetch=fetch)
    labels = contents.labels if new.num_classes == old.num_classes else None
    return contents.noting(*notes, tensors=tensors, labels=labels)


def _representation(config: ModelConfig) -> int | None:
    return config.representation_size if isinstance(config, ViTConfig) else None


def _resize_image(contents: Contents, new: ViTConfig) -> Contents:
    """Resize the patch kernel for another patch size, and positions for another grid."""
    old, source = contents.config, contents.tensors
    assert isinstance(old, ViTConfig)  # noqa: S101 - the caller knows
    specs, notes = dict(source.specs), []
    kernel = "embedding.projection.weight"
    if new.patch_size != old.patch_size:
        channels = specs[kernel].shape[1] // (old.patch_size[0] * old.patch_size[1])
        specs[kernel] = Spec((new.dim, channels * new.patch_size[0] * new.patch_size[1]), specs[kernel].dtype)
        notes.append(f"the patch kernel was resized from {size_text(old.patch_size)} to {size_text(new.patch_size)}.")
    tables = {name: found["part"] for name in specs if (found := _POSITIONS.match(name))}
    tables |= {name: "offsets" for name in specs if name.endswith(".attention.offsets")}
    if new.grid != old.grid and (tables or new.positions == "sincos-2d"):
        for name, shape in needed_shapes(new).items():
            specs[name] = Spec(shape, specs[name].dtype) if name in tables else specs[name]
        notes.append(f"positions were resized from a grid of {size_text(old.grid)} to {size_text(new.grid)}.")

    def fetch(name: str) -> Tensor:
        if name == kernel and new.patch_size != old.patch_size:
            return resize_patch_kernel(source[name], old.patch_size, new.patch_size)
        if name in tables and new.grid != old.grid:
            return _resized(source[name], tables[name], old.grid, new.grid, new)
        return source[name]

    return contents.noting(*notes, tensors=TensorSource(origin=source.origin, specs=specs, fetch=fetch))


def _resized(table: Tensor, part: str, old: Size, new: Size, config: ViTConfig) -> Tensor:
    match part:
        case "table":
            return resize_positions(table, old, new, way=config.position_resize).contiguous()
        case "x":
            return resize_axis(table, new[1], way=config.position_resize).contiguous()
        case "y":
            return resize_axis(table, new[0], way=config.position_resize).contiguous()
        case _:
            return resize_relative(table, old, new)


def resize_patch_kernel(kernel: Tensor, old: Size, new: Size) -> Tensor:
    """Find the kernel for patches of another size that answers a resized patch most like the old one did.

    With B the matrix that resizes a patch x, the new kernel w' minimises E |<x, w> - <B x, w'>|^2 over white x: it
    is the least-squares solution of B^T w' = w, and exact when patches grow.
    """
    cells = old[0] * old[1]
    basis = torch.eye(cells, dtype=torch.float64).reshape(cells, 1, *old)
    resized = F.interpolate(basis, size=new, mode="bilinear", align_corners=False, antialias=True)
    inverse = torch.linalg.pinv(resized.reshape(cells, -1))  # new cells, old cells
    rows = kernel.double().reshape(len(kernel), -1, cells)
    return (rows @ inverse.mT).flatten(1).to(kernel.dtype)
