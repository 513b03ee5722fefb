"""An engine around another one, of which it changes a part."""

from dataclasses import dataclass

import torch

from vitrail.base.shapes import Logits, PixelBatch, Representation
from vitrail.data.preprocessing import Preprocessing
from vitrail.runtime.engine import Engine


@dataclass(frozen=True, eq=False)
class EngineAround:
    """Everything as in the engine inside; the kinds of it define what differs."""

    engine: Engine
    """What computes."""

    @property
    def preprocessing(self) -> Preprocessing:
        """How an image becomes input."""
        return self.engine.preprocessing

    @property
    def num_outputs(self) -> int:
        """How many classes there are."""
        return self.engine.num_outputs

    @property
    def feature_width(self) -> int:
        """How many numbers a representation has."""
        return self.engine.feature_width

    @property
    def device(self) -> torch.device:
        """Where it computes."""
        return self.engine.device

    @property
    def dtype(self) -> torch.dtype:
        """The type of the numbers that it computes with."""
        return self.engine.dtype

    @property
    def digest(self) -> str:
        """What names the network."""
        return self.engine.digest

    @property
    def concurrent(self) -> bool:
        """Whether several threads may call it at once."""
        return self.engine.concurrent

    def logits(self, pixels: PixelBatch) -> Logits:
        """Return the score of every class."""
        return self.engine.logits(pixels)

    def features(self, pixels: PixelBatch) -> Representation:
        """Return the input of the last linear layer."""
        return self.engine.features(pixels)
