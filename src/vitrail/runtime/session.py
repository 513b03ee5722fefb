"""A graph in the runtime that runs it: arrays in, arrays out; imports neither torch nor a runtime."""

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np


@runtime_checkable
class Session(Protocol):
    """A graph that was loaded and is ready to run; several threads may call it."""

    @property
    def name(self) -> str:
        """The runtime: onnxruntime or openvino."""

    @property
    def version(self) -> str:
        """The runtime's version."""

    @property
    def outputs(self) -> tuple[str, ...]:
        """The names of the outputs."""

    def run(self, images: np.ndarray, outputs: Sequence[str]) -> list[Any]:
        """Return the named outputs for a batch, as arrays."""
