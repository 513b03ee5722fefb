"""Tensors by name, in a file or in memory; each is read when it is used, and only those are in memory."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import torch
from torch import Tensor

from vitrail.base.errors import CheckpointError

Shape = tuple[int, ...]


class Spec(NamedTuple):
    """The shape and type of a tensor, known before it is read."""

    shape: Shape
    dtype: torch.dtype | None
    """None stands for numbers that torch has no type for."""


@dataclass(frozen=True, kw_only=True)
class TensorSource:
    """Named tensors of one file or model; `source[name]` reads one."""

    origin: str
    """The file, for messages."""
    specs: Mapping[str, Spec]
    """Shape and type of every tensor."""
    fetch: Callable[[str], Tensor]
    """Reads a tensor that `specs` names."""
    metadata: Mapping[str, str] = field(default_factory=dict)
    """Other text that the file carries."""
    release: Callable[[str], None] = lambda _: None
    """Frees the memory of a tensor that was copied and is no longer used."""

    def __getitem__(self, name: str) -> Tensor:
        """Read one tensor."""
        return self.fetch(name)

    def __contains__(self, name: object) -> bool:
        """Return whether there is a tensor of that name."""
        return name in self.specs

    def __iter__(self) -> Iterator[str]:
        """Walk over the names."""
        return iter(self.specs)

    def __len__(self) -> int:
        """Count the tensors."""
        return len(self.specs)

    @property
    def shapes(self) -> dict[str, Shape]:
        """The shape of every tensor."""
        return {name: spec.shape for name, spec in self.specs.items()}

    def shape(self, name: str, rank: int) -> Shape:
        """Return the shape of a tensor from which the sizes of the model follow; refuse another number of axes."""
        spec = self.specs.get(name)
        if spec is None:
            raise CheckpointError(
                f"{self.origin} has no tensor {name!r}, which gives the sizes of the model; "
                "the file is incomplete or of another layout."
            )
        if len(spec.shape) != rank or 0 in spec.shape:
            raise CheckpointError(
                f"the tensor {name!r} of {self.origin} has the shape {shape_text(spec.shape)}, but {rank} axes "
                "with at least one value each are needed; the file is of another layout."
            )
        return spec.shape

    def renamed(self, names: Mapping[str, str]) -> "TensorSource":
        """Return the tensors that `names` lists, new name -> old name."""
        return TensorSource(
            origin=self.origin,
            specs={new: self.specs[old] for new, old in names.items()},
            fetch=lambda name: self.fetch(names[name]),
            metadata=self.metadata,
            release=lambda name: self.release(names[name]),
        )

    def in_float32(self) -> "TensorSource":
        """Return the same values in float32, in which those of half precision lose nothing."""
        specs = {name: Spec(spec.shape, torch.float32) for name, spec in self.specs.items()}
        return replace(self, specs=specs, fetch=lambda name: self.fetch(name).float())

    def below(self, prefix: str) -> "TensorSource":
        """Return the tensors whose names start with `prefix`, without it."""
        return self.renamed({name.removeprefix(prefix): name for name in self.specs if name.startswith(prefix)})


def from_tensors(tensors: Mapping[str, Tensor], origin: str) -> TensorSource:
    """Treat tensors in memory like those of a file."""
    return TensorSource(
        origin=origin,
        specs={name: Spec(tuple(tensor.shape), tensor.dtype) for name, tensor in tensors.items()},
        fetch=lambda name: tensors[name].detach(),
    )


def shape_text(shape: Shape) -> str:
    """Write a shape as 3x4, or as `one value`."""
    return "x".join(map(str, shape)) if shape else "one value"
