"""A graph in ONNX Runtime, on the CPU."""

import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from vitrail.base.errors import CheckpointError
from vitrail.base.extras import require
from vitrail.runtime.choice import PACKAGES
from vitrail.runtime.session import check_inputs, run_error

FATAL = 4
"""The level of its log above which nothing is: what it refuses is raised too."""

_KINDS = {"tensor(float)": "float32", "tensor(uint8)": "uint8"}


class OnnxRuntimeSession:
    """A graph in ONNX Runtime; `model` is the content of a file, or its path, from which weights are mapped."""

    name = "onnxruntime"

    def __init__(self, model: bytes | Path, *, threads: int, called: str = "the graph") -> None:
        runtime = require("onnxruntime", extra=PACKAGES[self.name][0], purpose="running an ONNX file")
        self.version: str = runtime.__version__
        options = runtime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        options.log_severity_level = FATAL
        self.called = called
        source = model if isinstance(model, bytes) else os.fspath(model)
        try:
            self.session = runtime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
            inputs, outputs = self.session.get_inputs(), self.session.get_outputs()
            names = [value.name for value in inputs]
            self.outputs = tuple(value.name for value in outputs)
            self.properties = dict(self.session.get_modelmeta().custom_metadata_map)
        except Exception as error:  # its errors share no class but this, and names that are not UTF-8 are Python's own
            logging.getLogger("vitrail").debug("ONNX Runtime: %s", error)
            raise CheckpointError(
                f"{called} does not run in ONNX Runtime {self.version}: {' '.join(str(error).split())[:200]}"
            ) from None
        check_inputs(names, called)
        self.input = names[0]
        self.shape, self.kind = _sides(inputs[0].shape), _KINDS.get(inputs[0].type, inputs[0].type)
        self.output_shapes = tuple(_sides(value.shape) for value in outputs)

    def run(self, images: np.ndarray, outputs: Sequence[str]) -> list[Any]:
        """Return the named outputs for a batch."""
        try:
            return list(self.session.run(list(outputs), {self.input: images}))
        except Exception as error:
            raise run_error(self.called, f"ONNX Runtime {self.version}", images, error) from None


def _sides(shape: Sequence[Any]) -> tuple[int | None, ...]:
    return tuple(side if isinstance(side, int) else None for side in shape)
