"""One table for both directions: which of their tensors make up each of ours, and how.

A layout lists, for each of our tensors, their tensors and a codec. Reading runs the codec forwards, writing
backwards; the shapes that a file must have come from running it backwards on tensors without memory. Two special
cases: a tensor of theirs that several entries name holds theirs one below the other, in the order of the entries (see
`rows`), and an entry that names none of theirs stands for zeros, which a file leaves out.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from vitrail.base.errors import CheckpointError
from vitrail.base.tensors import Shape, Spec, TensorSource
from vitrail.checkpoint.contents import needed_shapes
from vitrail.checkpoint.match import check_match
from vitrail.model.family import ModelConfig
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


def rows(start: int, stop: int) -> Codec:
    """Take some rows of a tensor of theirs whose other rows belong to other tensors of ours."""
    return single(lambda theirs: theirs[start:stop], lambda ours: ours)


def permuted(codec: Codec, order: Sequence[int]) -> Codec:
    """Bring the rows of what a codec reads into an order: row i of ours is row `order[i]` of what it reads."""
    index = torch.tensor(order)
    return Codec(
        lambda theirs: codec.read(theirs)[index], lambda ours: codec.write(ours[index.argsort().to(ours.device)])
    )


def with_zero_rows(at: int, count: int) -> Codec:
    """Leave rows out of a table that for us are no part of it, and write zeros in their place."""
    return single(
        lambda theirs: torch.cat([theirs[0, :at], theirs[0, at + count :]]),
        lambda ours: torch.cat([ours[:at], ours.new_zeros(count, ours.shape[1]), ours[at:]])[None],
    )


# Two heads whose answers are averaged, as one on both of their inputs side by side.
AVERAGED_KERNELS = Codec(
    lambda theirs: torch.cat(list(theirs), dim=1) / 2, lambda ours: [2 * part for part in ours.chunk(2, dim=1)]
)
AVERAGED_BIASES = Codec(lambda theirs: (theirs[0] + theirs[1]) / 2, lambda ours: [ours, ours])
WITH_ZERO_BIAS = Codec(lambda theirs: theirs[0], lambda ours: [ours, ours.new_zeros(len(ours))])
QUERY_AND_VALUE = Codec(
    lambda theirs: torch.cat([theirs[0], torch.zeros_like(theirs[0]), theirs[1]]), lambda ours: ours.chunk(3)[::2]
)
"""Biases of queries and values alone; one of the keys adds the same to all scores of a query, which softmax ignores."""


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
    theirs = _all_shapes(table, needed)
    check_match(theirs, source, what, advice="every difference between what that needs and what the file has:")
    usual = next(source.specs[name].dtype for name in theirs)
    specs = {
        ours: Spec(needed[ours], source.specs[entry.theirs[0]].dtype if entry.theirs else usual)
        for ours, entry in table.items()
    }

    def fetch(name: str) -> Tensor:
        entry = table[name]
        if not entry.theirs:
            return torch.zeros(needed[name], dtype=usual)
        ours = entry.codec.read([source[part] for part in entry.theirs]).contiguous()
        for part in entry.theirs if len(entry.theirs) > 1 else ():  # stacked, so that ours is a copy
            source.release(part)
        return ours

    return TensorSource(origin=source.origin, specs=specs, fetch=fetch)


def write_layout(layout: Layout, source: TensorSource) -> TensorSource:
    """Return their tensors as they are made from ours."""
    table = _needed_entries(layout, source.shapes)
    places: dict[str, list[tuple[Entry, int]]] = {}
    for entry in table.values():
        if not entry.theirs and source[entry.ours].any():
            raise CheckpointError(f"the format has no place for {entry.ours}, which is not zero and would be lost.")
        for at, name in enumerate(entry.theirs):
            places.setdefault(name, []).append((entry, at))
    shapes = _all_shapes(table, source.shapes)
    specs = {name: Spec(shape, source.specs[places[name][0][0].ours].dtype) for name, shape in shapes.items()}

    def fetch(name: str) -> Tensor:
        parts = [entry.codec.write(source[entry.ours])[at] for entry, at in places[name]]
        return (parts[0] if len(parts) == 1 else torch.cat(parts)).contiguous()

    return TensorSource(origin=source.origin, specs=specs, fetch=fetch)


def _needed_entries(layout: Layout, needed: dict[str, Shape]) -> dict[str, Entry]:
    """Keep the entries of tensors that the model has; a tensor without an entry would be lost, so it is refused."""
    table = {entry.ours: entry for entry in layout if entry.ours in needed}
    lost = [name for name in needed if name not in table]
    if lost:
        raise CheckpointError(f"the format has no place for {', '.join(lost)}, which would be lost.")
    return table


def _all_shapes(table: dict[str, Entry], needed: dict[str, Shape]) -> dict[str, Shape]:
    """Return the shape of every tensor of theirs; what several entries name has the rows of all."""
    shapes: dict[str, Shape] = {}
    for entry in table.values():
        if not entry.theirs:
            continue
        written = entry.codec.write(torch.empty(needed[entry.ours], device="meta"))
        for name, tensor in zip(entry.theirs, written, strict=True):
            shape = tuple(tensor.shape)
            shapes[name] = (shapes[name][0] + shape[0], *shape[1:]) if name in shapes else shape
    return shapes
