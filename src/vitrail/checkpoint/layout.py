"""One table for both directions: which of their tensors make up each of ours, and how.

A layout lists, for each of our tensors, their tensors and a codec. Reading runs the codec forwards, writing
backwards; the shapes that a file must have come from running it backwards on tensors without memory.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from vitrail.base.errors import CheckpointError
from vitrail.base.tensors import Shape, Spec, TensorSource
from vitrail.checkpoint.contents import needed_shapes
from vitrail.checkpoint.match import check_match
from vitrail.model.contract import ModelConfig
from vitrail.model.patches import Size


class Codec(NamedTuple):
    """How one of our tensors lies in someone else's file; `write` undoes `read`."""

    read: Callable[[Sequence[Tensor]], Tensor]
    write: Callable[[Tensor], Sequence[Tensor]]


def single(read: Callable[[Tensor], Tensor], write: Callable[[Tensor], Tensor]) -> Codec:
    """Make a codec between one tensor and one tensor."""
    return Codec(lambda theirs: read(theirs[0]), lambda ours: [write(ours)])


COPY = single(lambda theirs: theirs, lambda ours: ours)
TRANSPOSED = single(lambda theirs: theirs.mT, lambda ours: ours.mT)
BATCHED = single(lambda theirs: theirs[0], lambda ours: ours[None])
KERNEL_HWIO = single(lambda theirs: theirs.permute(3, 2, 0, 1), lambda ours: ours.permute(2, 3, 1, 0))
KERNEL_1X1_OIHW = single(lambda theirs: theirs[:, :, 0, 0], lambda ours: ours[:, :, None, None])
KERNEL_1X1_HWIO = single(lambda theirs: theirs[0, 0].mT, lambda ours: ours.mT[None, None])
# Positions of a library that gives the class token none: a zero entry stands in front of ours.
WITHOUT_CLASS_ENTRY = single(
    lambda theirs: torch.cat([theirs.new_zeros(1, theirs.shape[2]), theirs[0]]), lambda ours: ours[None, 1:]
)


def stacked(parts: int) -> Codec:
    """Stack their equal matrices or vectors into one of ours: q, k and v."""
    return Codec(lambda theirs: torch.cat(list(theirs)), lambda ours: ours.chunk(parts))


def patches_oihw(patch_size: Size) -> Codec:
    """Flatten the kernel of a strided convolution: the same memory."""
    return single(lambda theirs: theirs.flatten(1), lambda ours: ours.reshape(len(ours), -1, *patch_size))


def patches_hwio(patch_size: Size) -> Codec:
    """Flatten the kernel of a strided convolution as JAX stores it."""
    return single(
        lambda theirs: theirs.permute(3, 2, 0, 1).flatten(1),
        lambda ours: ours.reshape(len(ours), -1, *patch_size).permute(2, 3, 1, 0),
    )


class Entry(NamedTuple):
    """One of our tensors, and theirs that make it up."""

    ours: str
    theirs: tuple[str, ...]
    codec: Codec = COPY


Layout = list[Entry]


def named(ours: str, theirs: str, codec: Codec = COPY, *, parts: Iterable[str] = ("weight", "bias")) -> Layout:
    """List the weight and the bias of one layer, both with the same codec."""
    return [Entry(f"{ours}.{part}", (f"{theirs}.{part}",), codec) for part in parts]


def read_layout(layout: Layout, source: TensorSource, config: ModelConfig, what: str) -> TensorSource:
    """Return our tensors as they are in their file, after every one of theirs has been accounted for."""
    needed = needed_shapes(config)
    table = _needed_entries(layout, needed)
    theirs = {name: shape for entry in table.values() for name, shape in _their_shapes(entry, needed)}
    check_match(theirs, source, what, advice="every difference between what that needs and what the file has:")
    specs = {ours: Spec(needed[ours], source.specs[entry.theirs[0]].dtype) for ours, entry in table.items()}

    def fetch(name: str) -> Tensor:
        entry = table[name]
        ours = entry.codec.read([source[part] for part in entry.theirs]).contiguous()
        for part in entry.theirs if len(entry.theirs) > 1 else ():  # stacked, so that ours is a copy
            source.release(part)
        return ours

    return TensorSource(origin=source.origin, specs=specs, fetch=fetch)


def write_layout(layout: Layout, source: TensorSource) -> TensorSource:
    """Return their tensors as they are made from ours."""
    table = _needed_entries(layout, source.shapes)
    places = {name: (entry, at) for entry in table.values() for at, name in enumerate(entry.theirs)}
    specs = {}
    for entry in table.values():
        for name, shape in _their_shapes(entry, source.shapes):
            specs[name] = Spec(shape, source.specs[entry.ours].dtype)

    def fetch(name: str) -> Tensor:
        entry, at = places[name]
        return entry.codec.write(source[entry.ours])[at].contiguous()

    return TensorSource(origin=source.origin, specs=specs, fetch=fetch)


def _needed_entries(layout: Layout, needed: dict[str, Shape]) -> dict[str, Entry]:
    """Keep the entries of tensors that the model has; a tensor without an entry would be lost, so it is refused."""
    table = {entry.ours: entry for entry in layout if entry.ours in needed}
    lost = [name for name in needed if name not in table]
    if lost:
        raise CheckpointError(f"the format has no place for {', '.join(lost)}, which would be lost.")
    return table


def _their_shapes(entry: Entry, needed: dict[str, Shape]) -> list[tuple[str, Shape]]:
    ours = torch.empty(needed[entry.ours], device="meta")
    written = entry.codec.write(ours)
    return [(name, tuple(tensor.shape)) for name, tensor in zip(entry.theirs, written, strict=True)]
