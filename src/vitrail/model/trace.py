"""The intermediates of one pass through a model, by name, and the recorder that collects them."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from jaxtyping import Float
from torch import Tensor

from vitrail.base.errors import ConfigError
from vitrail.base.shapes import AttentionMap, FeatureMap, KeptPatches, Logits, Patches, Representation, Tokens

Selection = Literal["all"] | Sequence[int] | None
"""Layers, blocks or heads by number, negative ones from the end; "all"; or None."""
Reduce = Callable[[AttentionMap], Tensor]
"""Turns A of one block into what is kept of it."""
ReduceUnits = Callable[[Float[Tensor, "... unit"]], Tensor]
"""Turns the hidden activations of one branch, units last, into what is kept of them."""
Take = Callable[[Tensor], None]
"""Takes hidden activations from the pass."""


@dataclass(frozen=True, kw_only=True)
class Encoded:
    """The output of an encoder, with the selected intermediates."""

    output: Tensor
    """What `represent` takes: the tokens after the last LayerNorm, or a ResNet's feature map after its last norm."""
    kept: KeptPatches | None = None
    """The patches of each image that were encoded; None means all of them, in order."""
    layers: dict[int, Tensor] = field(default_factory=dict)
    """The outputs of the chosen layers: 0 is z_0 (Eq. 1), l is z_l (Eq. 3)."""
    attention: dict[int, Tensor] = field(default_factory=dict)
    """A (Eq. 6) of the chosen blocks, from 0, and heads, as the pass used it: gradients reach it; or A reduced."""
    units: dict[str, Tensor] = field(default_factory=dict)
    """What was kept of the hidden activations of each branch, by its name."""
    feature_map: FeatureMap | None = None
    """The last feature map of convolutions, as the pass used it; None where there is none."""
    sizes: Tensor | None = None
    """How many patches each token stands for, of (batch, token, 1); None where none were merged."""


@dataclass(frozen=True, kw_only=True)
class Trace:
    """The intermediates of one pass of a Vision Transformer or a hybrid."""

    feature_maps: dict[str, Tensor] = field(default_factory=dict)
    """A hybrid's feature maps, by the name of the module; empty for a pure Vision Transformer."""
    patches: Patches
    """x_p E, before the class token and positions."""
    embedded: Tokens
    """z_0 (Eq. 1)."""
    blocks: tuple[Tokens, ...]
    """z_1 ... z_L (Eq. 3)."""
    attention: dict[int, AttentionMap]
    """A of the chosen blocks and heads (Eq. 6), by the number of the block."""
    encoded: Tokens
    """The tokens after the last LayerNorm (Eq. 4 for the class token)."""
    representation: Representation
    """The input of the last linear layer."""
    logits: Logits
    """What `model(images)` returns."""


@dataclass(frozen=True, kw_only=True)
class ResNetTrace:
    """The intermediates of one pass of a ResNet."""

    feature_maps: dict[str, Tensor]
    """The output of the root and of every unit, by the name of the module."""
    representation: Representation
    """The input of the last linear layer."""
    logits: Logits
    """What `model(images)` returns."""


class MapRecorder:
    """Collects A of some heads of one attention layer, or the result of `reduce` on it, in `weights`."""

    def __init__(self, heads: list[int], reduce: Reduce | None = None) -> None:
        self.heads, self.reduce = heads, reduce
        self.weights: Tensor | None = None

    def take(self, weights: AttentionMap) -> None:
        """Take A from the pass."""
        self.weights = weights if self.reduce is None else self.reduce(weights)


class Recorder:
    """Collects the selected intermediates of one pass; `NOTHING` collects none."""

    def __init__(
        self,
        *,
        layers: Sequence[int] = (),
        attention: Sequence[int] = (),
        heads: Sequence[int] = (),
        reduce: Reduce | None = None,
        units: ReduceUnits | None = None,
        by_name: bool = False,
    ) -> None:
        self.numbers, self.by_name, self.reduce_units = frozenset(layers), by_name, units
        self.maps = {block: MapRecorder(list(heads), reduce) for block in attention}
        self.layers: dict[int, Tensor] = {}
        self.named: dict[str, Tensor] = {}
        self.units: dict[str, Tensor] = {}

    def layer(self, number: int, output: Tensor) -> None:
        """Record the output of a layer, 0 for the embedding."""
        if number in self.numbers:
            self.layers[number] = output

    def name(self, name: str, value: Tensor) -> None:
        """Record an intermediate that has a name: the patches, or a feature map."""
        if self.by_name:
            self.named[name] = value

    def activations(self, name: str) -> Take | None:
        """Return what takes the hidden activations of a branch, units last; None where nobody asks for them."""
        reduce = self.reduce_units
        if reduce is None:
            return None

        def take(activations: Tensor) -> None:
            self.units[name] = reduce(activations)

        return take

    @property
    def attention(self) -> dict[int, Tensor]:
        """The recorded maps, or their reductions, by block."""
        return {block: maps.weights for block, maps in self.maps.items() if maps.weights is not None}


NOTHING = Recorder()
"""The recorder of a pass without intermediates."""


def select(selection: Selection, count: int, what: str) -> list[int]:
    """Turn a selection into numbers from 0 to count - 1, in the order of the selection."""
    if selection is None:
        return []
    if isinstance(selection, str) or not isinstance(selection, Iterable):
        if selection != "all":
            raise ConfigError(f"{what} to trace are given as {selection!r}; give 'all', a list of numbers, or None.")
        return list(range(count))
    wrong = [number for number in selection if number not in range(-count, count)]
    if wrong:
        raise ConfigError(
            f"there are no {what} {', '.join(map(str, wrong))} to trace: there are {count}, 0 to {count - 1}, "
            f"or {-count} to -1 from the end."
        )
    numbers = [number % count for number in selection]
    if len(set(numbers)) < len(numbers):
        raise ConfigError(f"{what} {', '.join(map(str, selection))} name one twice; list each once.")
    return numbers
