"""A model whose encoder runs in our own program, in float32 or int8; the rest of it runs in torch."""

import hashlib
from dataclasses import dataclass, replace

import torch

from vitrail.runtime.around import EngineAround
from vitrail.runtime.choice import Precision
from vitrail.runtime.engine import TorchEngine
from vitrail.runtime.native_encoder import native_model
from vitrail.runtime.native_library import find_compiler, program_key


@dataclass(frozen=True, eq=False)
class NativeEngine(EngineAround):
    """A network with a native encoder; it computes no gradients."""

    source: str
    """The digest of the model."""
    precision: Precision
    """The numbers that the blocks compute with."""
    kind = "native"

    @property
    def dtype(self) -> torch.dtype:
        """The type of the numbers that the blocks compute with."""
        return torch.int8 if self.precision == "int8" else torch.float32

    @property
    def digest(self) -> str:
        """What names the network: another processor may round otherwise, and so have other digests."""
        program = program_key(find_compiler() or [])
        return hashlib.sha256(f"{self.source} native {self.precision} {program}".encode()).hexdigest()


def native_engine(engine: TorchEngine, precision: Precision | None) -> NativeEngine:
    """Return an engine that shares what is not in the blocks with another; their weights are packed for products."""
    model = native_model(engine.model, int8=precision == "int8")
    return NativeEngine(replace(engine, model=model), engine.digest, precision or "float32")
