"""What a model has inside that can be looked at: filters on pixels, positions, and branches that can be left out."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from jaxtyping import Float
from torch import Tensor

BranchKind = Literal["attention", "mlp", "head", "unit"]


@dataclass(frozen=True, kw_only=True)
class Branch:
    """A part beside a residual connection; with its last weights at zero, the residual passes unchanged."""

    name: str
    kind: BranchKind
    """The attention or the MLP of a block, one head, or a unit of a ResNet."""
    layer: int
    """The number of its block, or of its unit, from 0."""
    head: int | None = None
    """The number of the head, for one head."""
    weights: tuple[str, ...]
    """The parameters that are zero when the branch is left out."""
    columns: tuple[int, int] | None = None
    """Where only some columns of the weights belong to it: the first, and the one after the last."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Positions:
    """How a model tells patches apart by their place; rows are in raster order of its grid."""

    tables: dict[str, Float[Tensor, "patch width"]] = field(default_factory=dict)
    """A vector for each patch, by where it is added; of rotary positions, the cosines and sines."""
    offsets: dict[str, Float[Tensor, "offset width"]] = field(default_factory=dict)
    """Of relative positions: a vector for each offset between two tokens of the sequence, 0 in the middle, by block."""


def block_branches(layer: int, *, heads: int, head_dim: int, mixer: tuple[str, ...]) -> list[Branch]:
    """Name the branches of an encoder block, and each of its heads; `mixer` names the last weights of its mixer."""
    prefix, name = f"encoder.blocks.{layer}.", f"block {layer}"
    attention = tuple(f"{prefix}attention.{part}" for part in mixer)
    mlp = (f"{prefix}mlp.out.weight", f"{prefix}mlp.out.bias")
    word = "attention" if heads else "mixer"
    first = [Branch(name=f"{name}, {word}", kind="attention", layer=layer, weights=attention)] if attention else []
    return [
        *first,
        Branch(name=f"{name}, MLP", kind="mlp", layer=layer, weights=mlp),
        *(
            Branch(
                name=f"{name}, head {head}",
                kind="head",
                layer=layer,
                head=head,
                weights=attention[:1],
                columns=(head * head_dim, (head + 1) * head_dim),
            )
            for head in range(heads)
        ),
    ]


def unit_branches(stages: Iterable[int], prefix: str, last: tuple[str, ...]) -> list[Branch]:
    """Name the units of a ResNet's stages, given how many each has and which weights come last in a unit."""
    places = [(stage, unit) for stage, units in enumerate(stages) for unit in range(units)]
    return [
        Branch(
            name=f"stage {stage}, unit {unit}",
            kind="unit",
            layer=number,
            weights=tuple(f"{prefix}stages.{stage}.{unit}.{weight}" for weight in last),
        )
        for number, (stage, unit) in enumerate(places)
    ]
