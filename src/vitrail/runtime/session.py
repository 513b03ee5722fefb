"""A graph in the runtime that runs it: arrays in, arrays out; imports neither torch nor a runtime."""

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from vitrail.base.errors import CheckpointError


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
    def shape(self) -> tuple[int | None, ...]:
        """The shape of the input; None for what may be of any size."""

    @property
    def kind(self) -> str:
        """The type of the input, such as uint8 or float32."""

    @property
    def outputs(self) -> tuple[str, ...]:
        """The names of the outputs."""

    @property
    def output_shapes(self) -> tuple[tuple[int | None, ...], ...]:
        """Their shapes."""

    @property
    def properties(self) -> dict[str, str]:
        """The texts that the author of the file stored beside the graph."""

    def run(self, images: np.ndarray, outputs: Sequence[str]) -> list[Any]:
        """Return the named outputs for a batch, as arrays."""


def fits(shape: Sequence[int | None], expected: Sequence[int | None]) -> bool:
    """Return whether a shape may be another; None is any size."""
    return len(shape) == len(expected) and all(
        side is None or other is None or side == other for side, other in zip(shape, expected, strict=True)
    )


def run_error(called: str, runtime: str, images: np.ndarray, error: Exception | str) -> CheckpointError:
    """Return the error for a graph that does not get through a batch."""
    shape = "x".join(map(str, images.shape))
    reason = " ".join(str(error).split())[:200]
    return CheckpointError(f"{called} failed in {runtime} with images of {shape}: {reason}")


def check_inputs(names: Sequence[str], called: str) -> None:
    """Refuse a graph with another number of inputs than one."""
    if len(names) != 1:
        raise CheckpointError(
            f"{called} has {len(names)} inputs ({', '.join(names)}), but a graph with one, the images, is needed."
        )
