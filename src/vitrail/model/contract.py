"""The contract between models and the rest of the package: settings, a pass, a head, layers from input to output.

A new kind of model is a dataclass and a module, in any file:

    @dataclass(frozen=True, kw_only=True)
    class ToyConfig(ModelConfig, kind="toy"): ...

    class Toy(Model, config=ToyConfig): ...

Settings name it by its `kind`; it is then built, trained, saved, loaded and evaluated like the others. The module
defines `layers` from input to output, the `last_linear`, and its pass as `encode` and `represent`, or as `features`
alone where it has no intermediates to show.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Generator, Tensor, nn

from vitrail.base.errors import ConfigError
from vitrail.base.processor import settle
from vitrail.base.shapes import AttentionMap, Images, KeptPatches, Kernel, Logits, PoolWeights, Representation
from vitrail.model.anatomy import Branch, Positions
from vitrail.model.corruption import Corruption
from vitrail.model.family import ModelConfig
from vitrail.model.info import ModelInfo
from vitrail.model.trace import Encoded, Reduce, ReduceUnits, Selection
from vitrail.model.units import Unit, measure_unit


@dataclass(frozen=True, kw_only=True)
class Layer:
    """One step of depth: the unit of layer decay, of sharding and of freezing."""

    name: str
    prefixes: tuple[str, ...]
    """How the names of its parameters begin."""
    block: nn.Module | None = None
    """The module, if it is one of many of the same shape."""


class Model(nn.Module, ABC):
    """A network that maps images to logits, and describes its own parts."""

    config: Any
    """The settings that built it; each kind narrows the type."""
    info: ModelInfo
    """What goes with the weights: labels, preprocessing, provenance."""
    recompute: bool = False
    """Whether training keeps only the input of each block and computes the rest again."""
    head_prefix: ClassVar[str] = "head."
    """How the names of the last linear layer's parameters begin."""

    def __init_subclass__(cls, *, config: type[ModelConfig] | None = None, **rest: Any) -> None:
        """Tie a module to the settings that build it."""
        super().__init_subclass__(**rest)
        if config is not None:
            config.module = cls

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        settle()  # before a model computes for the first time
        self.config = config
        self.info = ModelInfo()

    @property
    @abstractmethod
    def last_linear(self) -> nn.Linear | None:
        """The linear layer that gives logits; None where the model has no classes."""

    def encode(
        self,
        images: Images,  # noqa: ARG002 - for kinds that use it, as all the others
        *,
        kept: KeptPatches | None = None,  # noqa: ARG002
        drop_patches: float = 0.0,  # noqa: ARG002
        generator: Generator | None = None,  # noqa: ARG002
        corruption: Corruption | None = None,  # noqa: ARG002
        any_size: bool = False,  # noqa: ARG002
        layers: Selection = None,  # noqa: ARG002
        attention: Selection = None,  # noqa: ARG002
        heads: Selection = "all",  # noqa: ARG002
        reduce: Reduce | None = None,  # noqa: ARG002
        units: ReduceUnits | None = None,  # noqa: ARG002
        pooled_only: bool = False,  # noqa: ARG002
    ) -> Encoded:
        """Run the network up to its head, and return the intermediates that the arguments select.

        Patches: those that `kept` lists for each image, or a random part when `drop_patches` leaves some out, drawn
        from `generator` or from torch's global one; the result has their numbers. `corruption` hides or
        exchanges embeddings of patches. `any_size` allows images of another size than the model's own.

        Intermediates: the outputs of `layers`, numbered as by `layers()`, and A of the blocks `attention` for `heads`,
        or the result of `reduce` on each A, so that only one A at a time is in memory. `units` is called with the
        hidden activations of each branch, and what it returns is kept. `pooled_only` skips everything that the head
        does not see, unless it is selected.
        """
        raise ConfigError(f"a {self.config.noun} has no intermediates before its head; use features.")

    def represent(self, encoded: Tensor) -> Representation:
        """Turn the encoder's output into the input of the last linear layer."""
        return encoded

    def poolings(self, encoded: Tensor) -> dict[str, Tensor]:  # noqa: ARG002 - for kinds that have several
        """Return what a head could see in place of its own pooling, by name: the class token, the mean of patches."""
        return {}

    def pool_weights(self, encoded: Tensor) -> PoolWeights:  # noqa: ARG002 - for kinds with tokens
        """Return how much pooling reads of each token of the encoder's output, as shares that sum to 1."""
        raise ConfigError(f"a {self.config.noun} does not pool tokens; choose a method that needs no attention.")

    @abstractmethod
    def layers(self) -> list[Layer]:
        """Return the layers from input to output; each parameter belongs to one."""

    def filters(self) -> Kernel | None:
        """Return the filters that the network applies to pixels; None where it shows none."""
        return None

    def positions(self) -> Positions:
        """Return how the network tells patches apart by their place."""
        return Positions()

    def branches(self) -> list[Branch]:
        """Name the parts that can be left out, from input to output."""
        return []

    def unusual_blocks(self) -> tuple[str, ...]:
        """Name what the blocks have that those of the paper (Eq. 2 and 3) do not."""
        return ("no encoder",)

    def with_engine(
        self,
        embedding: Callable[[Any], nn.Module],  # noqa: ARG002 - for kinds that have one
        encoder: Callable[[nn.Module], nn.Module],  # noqa: ARG002
    ) -> "Model":
        """Return a copy with another embedding of patches and another encoder, which are made of this one's."""
        raise ConfigError(f"a {self.config.noun} has no encoder that could be exchanged.")

    def matrices(self) -> dict[str, int]:
        """Name the kernels that are matrices inside blocks, with how many are stacked in each: 3 for q, k and v."""
        return {}

    def constants(self) -> dict[str, float]:
        """Name the parameters that start at a value of the settings."""
        return {}

    def units(self) -> list[Unit]:
        """Return the cost of each part of the network; by default torch counts the network as one part."""
        config: ModelConfig = self.config
        device = next(self.parameters()).device
        return [measure_unit(self, torch.empty(1, config.channels, *config.image_size, device=device))]

    def features(self, images: Images, *, drop_patches: float = 0.0, any_size: bool = False) -> Representation:
        """Compute the representation that the last linear layer sees."""
        encoded = self.encode(images, drop_patches=drop_patches, any_size=any_size, pooled_only=True)
        return self.represent(encoded.output)

    def attention_maps(
        self, images: Images, *, blocks: Selection = "all", heads: Selection = "all"
    ) -> dict[int, AttentionMap]:
        """Return A (Eq. 6) of the chosen blocks and heads, by the number of the block, and nothing else."""
        return self.encode(images, attention=blocks, heads=heads, pooled_only=True).attention

    def classify(self, representation: Representation) -> Logits:
        """Apply the last linear layer; a model without classes returns the representation."""
        return representation if self.last_linear is None else self.last_linear(representation)

    def forward(self, images: Images, *, drop_patches: float = 0.0, any_size: bool = False) -> Logits:
        """Map images to logits, or to the representation when the model has no classes."""
        return self.classify(self.features(images, drop_patches=drop_patches, any_size=any_size))

    def _repr_html_(self) -> str:
        """Return the facts about the model for a notebook, where torch would list every module."""
        from vitrail.model.card import card

        return card(self)

    def depth_of(self, name: str) -> int:
        """Return the number of the layer that a parameter belongs to, from 0 at the input."""
        return next(number for number, layer in enumerate(self.layers()) if name.startswith(layer.prefixes))

    @property
    def backbone_patterns(self) -> tuple[str, ...]:
        """Patterns that freeze everything but the last layer."""
        prefixes = {name.partition(".")[0] for name, _ in self.named_parameters() if not self.is_head(name)}
        return tuple(f"{prefix}.*" for prefix in sorted(prefixes))

    def is_head(self, name: str) -> bool:
        """Return whether a parameter belongs to the last linear layer."""
        return name.startswith(self.head_prefix)

    def zero_head(self) -> None:
        """Set the last layer to zero (App. B.1.1)."""
        for name, parameter in self.named_parameters():
            if self.is_head(name):
                nn.init.zeros_(parameter)
