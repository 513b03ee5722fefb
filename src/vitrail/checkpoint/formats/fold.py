"""Rewriting a model as an equal one that another format can hold; every fold is exact."""

import dataclasses
from collections.abc import Mapping

import torch
from torch import Tensor

from vitrail.base.tensors import Spec, TensorSource
from vitrail.checkpoint.contents import Contents
from vitrail.model.config import ViTConfig
from vitrail.model.positions import PositionKind, sincos_2d

CLASS_TOKEN = "embedding.class_token"  # noqa: S105 - the name of a tensor
TABLE = "embedding.positions.table"
PATCH_BIAS = "embedding.projection.bias"


def fold_positions(contents: Contents, holdable: tuple[PositionKind, ...]) -> Contents:
    """Write positions that a format does not know, but that are added once at the input, as a plain learned table."""
    config = contents.config
    if not isinstance(config, ViTConfig) or config.positions in holdable or "learned-1d" not in holdable:
        return contents
    if config.position_placement != "input" or config.positions not in ("learned-2d", "sincos-2d"):
        return contents
    source, entry = contents.tensors, bool(config.class_token)

    def table() -> Tensor:
        if config.positions == "sincos-2d":
            return sincos_2d(config.dim, config.grid, class_entry=entry).to(dtype)
        rows, columns = config.grid
        x = source["embedding.positions.x"].expand(rows, -1, -1)
        y = source["embedding.positions.y"].unsqueeze(1).expand(-1, columns, -1)
        cells = torch.cat([x, y], dim=2).flatten(0, 1)
        return torch.cat([source["embedding.positions.class_entry"], cells]) if entry else cells

    dtype = source.specs["embedding.projection.weight"].dtype
    specs = {name: spec for name, spec in source.specs.items() if not name.startswith("embedding.positions.")}
    specs[TABLE] = Spec((config.num_tokens, config.dim), dtype)
    folded = TensorSource(
        origin=source.origin, specs=specs, fetch=lambda name: table() if name == TABLE else source[name]
    )
    note = f"the {config.positions} positions were written out as a plain table, which gives the same outputs."
    return contents.noting(note, config=dataclasses.replace(config, positions="learned-1d"), tensors=folded)


def fold_prefix(source: TensorSource, table: str, tokens: Mapping[str, int], *, first: int) -> TensorSource:
    """Add the positions of some tokens to these tokens themselves, and leave them out of the table.

    `tokens` names them in the order of their entries, which begin at `first`, with how many each stands for.
    """
    places, start = {}, first
    for name, count in tokens.items():
        places[name] = slice(start, start + count)
        start += count
    _, length, dim = source.shape(table, 3)
    spec = Spec((1, length - start + first, dim), source.specs[table].dtype)

    def fetch(name: str) -> Tensor:
        if name in places:
            return source[name] + source[table][:, places[name]]
        if name == table:
            return source[table][:, [*range(first), *range(start, length)]]
        return source[name]

    return TensorSource(origin=source.origin, specs={**source.specs, table: spec}, fetch=fetch)


def fold_patch_bias(contents: Contents) -> Contents:
    """Add the bias of the patch projection to the positions of all patches, and leave zeros in its place."""
    config, source = contents.config, contents.tensors
    if not isinstance(config, ViTConfig) or TABLE not in source or not source[PATCH_BIAS].any():
        return contents
    first = int(bool(config.class_token))

    def fetch(name: str) -> Tensor:
        if name == PATCH_BIAS:
            return torch.zeros_like(source[PATCH_BIAS])
        if name == TABLE:
            return torch.cat([source[TABLE][:first], source[TABLE][first:] + source[PATCH_BIAS]])
        return source[name]

    note = "the bias of the patch projection was added to the positions, which gives the same outputs."
    folded = TensorSource(origin=source.origin, specs=source.specs, fetch=fetch)
    return contents.noting(note, tensors=folded)


def fold_class_entry(contents: Contents) -> Contents:
    """Add the class token's entry of the positions to the class token itself, and leave a zero in its place."""
    config, source = contents.config, contents.tensors
    if not isinstance(config, ViTConfig) or not config.class_token or TABLE not in source:
        return contents

    def fetch(name: str) -> Tensor:
        if name == CLASS_TOKEN:
            return source[CLASS_TOKEN] + source[TABLE][:1]
        if name == TABLE:
            return torch.cat([torch.zeros_like(source[TABLE][:1]), source[TABLE][1:]])
        return source[name]

    note = "the class token's position was added to the class token, which gives the same outputs."
    folded = TensorSource(origin=source.origin, specs=source.specs, fetch=fetch)
    return contents.noting(note, tensors=folded)
