"""A model whose encoder runs in our own program, in float32 or int8; the rest of it runs in torch."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor

from vitrail.base.alone import each_alone, may_share
from vitrail.base.shapes import Logits, PixelBatch, Representation
from vitrail.runtime.around import EngineAround
from vitrail.runtime.choice import Precision
from vitrail.runtime.engine import TorchEngine
from vitrail.runtime.native_encoder import native_model
from vitrail.runtime.native_library import find_compiler, program_key
from vitrail.runtime.native_team import team_of


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

    def logits(self, pixels: PixelBatch) -> Logits:
        """Return the score of every class."""
        return _apart(self.engine.logits, pixels)

    def features(self, pixels: PixelBatch) -> Representation:
        """Return the input of the last linear layer."""
        return _apart(self.engine.features, pixels)


def _apart(answer: Callable[[PixelBatch], Tensor], pixels: PixelBatch) -> Tensor:
    """Compute in threads that have no others of torch's: those would look for work while the encoder's compute.

    Each of a few threads has its share of the images where all shares are equal; else one has all of them, and the
    encoder has as many threads as torch.
    """
    threads = torch.get_num_threads()
    if not may_share(threads):
        return answer(pixels)
    shares = threads if len(pixels) % threads == 0 else 1

    def compute(part: PixelBatch) -> Tensor:
        with team_of(threads // shares):
            return answer(part)

    return torch.cat(each_alone(threads, [partial(compute, part) for part in pixels.tensor_split(shares)]))


def native_engine(engine: TorchEngine, precision: Precision | None, *, owned: bool = False) -> NativeEngine:
    """Return an engine that computes what another does, and needs nothing of its memory; it takes what is `owned`."""
    source = engine.digest
    model = native_model(engine.model, int8=precision == "int8", owned=owned)
    return NativeEngine(replace(engine, model=model), source, precision or "float32")
