"""A graph in OpenVINO, on the CPU."""

import threading
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

import numpy as np

from vitrail.base.errors import CheckpointError
from vitrail.base.extras import require
from vitrail.runtime.card import KEY
from vitrail.runtime.choice import PACKAGES, Precision
from vitrail.runtime.openvino_mapped import Region, let_go, mapped_regions, own_copy
from vitrail.runtime.session import check_inputs, fits, run_error

HINTS: dict[Precision, str] = {"float32": "f32", "bfloat16": "bf16", "int8": "f32"}
"""In which numbers it computes what is not quantised; left to itself, it takes bfloat16 where the processor has it."""

_KINDS = {"f32": "float32", "u8": "uint8"}


class OpenVinoSession:
    """A graph in OpenVINO; `model` is one of its own models, or the path of a file that it reads."""

    name = "openvino"

    def __init__(
        self, model: Any | Path, *, threads: int, precision: Precision = "float32", called: str = "the graph"
    ) -> None:
        runtime = require("openvino", extra=PACKAGES[self.name][0], purpose="running an OpenVINO file")
        self.version: str = runtime.__version__.partition("-")[0]
        self.called = called
        settings = {
            "INFERENCE_PRECISION_HINT": HINTS[precision],
            "INFERENCE_NUM_THREADS": threads,
            "PERFORMANCE_HINT": "LATENCY",
            "ENABLE_CPU_PINNING": False,  # else processes side by side all compute on the same core
        }
        try:
            core = runtime.Core()
            graph, weights = _read(core, model) if isinstance(model, Path | bytes) else (model, [])
            check_inputs([value.get_any_name() for value in graph.inputs], called)
            place = [KEY, "card"]
            self.properties = {KEY: str(graph.get_rt_info(place).value)} if graph.has_rt_info(place) else {}
            with let_go(weights) if weights else nullcontext():  # the graph keeps them mapped
                self.compiled = core.compile_model(graph, "CPU", settings)
        except RuntimeError as error:
            raise CheckpointError(
                f"{called} does not run in OpenVINO {self.version}: {' '.join(str(error).split())[:200]}"
            ) from None
        (images,) = self.compiled.inputs
        self.shape, self.kind = _sides(images), _KINDS.get(images.element_type.get_type_name(), "another type")
        self.outputs = tuple(output.get_any_name() for output in self.compiled.outputs)
        self.output_shapes = tuple(_sides(output) for output in self.compiled.outputs)
        self.places = {name: place for place, name in enumerate(self.outputs)}
        self.requests = threading.local()

    def run(self, images: np.ndarray, outputs: Sequence[str]) -> list[Any]:
        """Return the named outputs for a batch; each thread has a request of its own."""
        request = getattr(self.requests, "own", None)
        if request is None:
            request = self.requests.own = self.compiled.create_infer_request()
        if not fits(images.shape, self.shape):  # it would take other shapes, and compute something
            raise run_error(self.called, f"OpenVINO {self.version}", images, f"the graph takes {list(self.shape)}.")
        try:
            request.infer([images])
        except Exception as error:  # of several kinds, by what does not fit
            raise run_error(self.called, f"OpenVINO {self.version}", images, error) from None
        return [request.get_output_tensor(self.places[name]).data.copy() for name in outputs]


def _read(core: Any, model: Path | bytes) -> tuple[Any, list[Region]]:
    """Read a graph, and return where its weights are mapped.

    A file that is overwritten meanwhile must not change answers, so only a copy of our own is mapped.
    """
    with own_copy(model) if isinstance(model, Path) else nullcontext() as copy, suppress(RuntimeError):
        if copy is not None:
            core.set_property({"ENABLE_MMAP": True})
            return core.read_model(copy), mapped_regions(copy.parent)
    core.set_property({"ENABLE_MMAP": False})
    return core.read_model(model), []


def _sides(port: Any) -> tuple[int | None, ...]:
    return tuple(side.get_length() if side.is_static else None for side in port.partial_shape)
