"""A graph in OpenVINO, on the CPU."""

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from vitrail.base.errors import CheckpointError
from vitrail.base.extras import require
from vitrail.runtime.choice import PACKAGES, Precision

HINTS: dict[Precision, str] = {"float32": "f32", "bfloat16": "bf16", "int8": "f32"}
"""In which numbers it computes what is not quantised; left to itself, it takes bfloat16 where the processor has it."""


class OpenVinoSession:
    """A graph in OpenVINO; `model` is one of its own models, or the path of a file that it reads."""

    name = "openvino"

    def __init__(
        self, model: Any | Path, *, threads: int, precision: Precision = "float32", called: str = "the graph"
    ) -> None:
        runtime = require("openvino", extra=PACKAGES[self.name][0], purpose="running an OpenVINO file")
        self.version: str = runtime.__version__.partition("-")[0]
        settings = {
            "INFERENCE_PRECISION_HINT": HINTS[precision],
            "INFERENCE_NUM_THREADS": threads,
            "PERFORMANCE_HINT": "LATENCY",
        }
        try:
            core = runtime.Core()
            graph = core.read_model(model) if isinstance(model, Path) else model
            self.compiled = core.compile_model(graph, "CPU", settings)
        except RuntimeError as error:
            raise CheckpointError(
                f"{called} does not run in OpenVINO {self.version}: {' '.join(str(error).split())[:200]}"
            ) from None
        self.outputs = tuple(output.get_any_name() for output in self.compiled.outputs)
        self.places = {name: place for place, name in enumerate(self.outputs)}
        self.requests = threading.local()

    def run(self, images: np.ndarray, outputs: Sequence[str]) -> list[Any]:
        """Return the named outputs for a batch; each thread has a request of its own."""
        request = getattr(self.requests, "own", None)
        if request is None:
            request = self.requests.own = self.compiled.create_infer_request()
        request.infer([images])
        return [request.get_output_tensor(self.places[name]).data.copy() for name in outputs]
