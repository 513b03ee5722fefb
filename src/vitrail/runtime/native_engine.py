"""A model whose encoder runs in our own program, in float32 or int8; the rest of it runs in torch."""

import hashlib
from dataclasses import dataclass, replace

import torch

from vitrail.base.shapes import Logits, PixelBatch, Representation
from vitrail.data.preprocessing import Preprocessing
from vitrail.runtime.choice import Precision
from vitrail.runtime.engine import TorchEngine
from vitrail.runtime.native_encoder import native_model
from vitrail.runtime.native_library import find_compiler, program_key


@dataclass(frozen=True, eq=False)
class NativeEngine:
    """A network with a native encoder; it computes no gradients."""

    network: TorchEngine
    """What runs it."""
    source: str
    """The digest of the model."""
    precision: Precision
    """The numbers that the blocks compute with."""
    kind = "native"

    @property
    def preprocessing(self) -> Preprocessing:
        """How an image becomes its input."""
        return self.network.preprocessing

    @property
    def num_outputs(self) -> int:
        """How many classes there are."""
        return self.network.num_outputs

    @property
    def feature_width(self) -> int:
        """How many numbers a representation has."""
        return self.network.feature_width

    @property
    def device(self) -> torch.device:
        """Where it computes."""
        return self.network.device

    @property
    def dtype(self) -> torch.dtype:
        """The type of the numbers that the blocks compute with."""
        return torch.int8 if self.precision == "int8" else torch.float32

    @property
    def digest(self) -> str:
        """What names the network: another processor may round otherwise, and so have other digests."""
        program = program_key(find_compiler() or [])
        return hashlib.sha256(f"{self.source} native {self.precision} {program}".encode()).hexdigest()

    @property
    def concurrent(self) -> bool:
        """Threads may call it at once, each with its share of torch's."""
        return True

    def logits(self, pixels: PixelBatch) -> Logits:
        """Return the score of every class."""
        return self.network.logits(pixels)

    def features(self, pixels: PixelBatch) -> Representation:
        """Return the input of the last linear layer."""
        return self.network.features(pixels)


def native_engine(engine: TorchEngine, precision: Precision | None) -> NativeEngine:
    """Return an engine that shares what is not in the blocks with another; their weights are packed for products."""
    model = native_model(engine.model, int8=precision == "int8")
    return NativeEngine(replace(engine, model=model), engine.digest, precision or "float32")
