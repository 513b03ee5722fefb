"""A graph in ONNX Runtime, on the CPU."""

import logging
import os
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import numpy as np

from vitrail.base.errors import CheckpointError
from vitrail.base.extras import require
from vitrail.runtime.choice import PACKAGES
from vitrail.runtime.onnx_mapped import without_weights
from vitrail.runtime.session import check_inputs, run_error

FATAL = 4
"""The level of its log above which nothing is: what it refuses is raised too."""

FEWEST = 2
"""Images for each thread from which on they share a batch; with fewer, some would wait for the last."""

_KINDS = {"tensor(float)": "float32", "tensor(uint8)": "uint8"}


class OnnxRuntimeSession:
    """A graph in ONNX Runtime; `model` is the content of a file, or its path, from which weights are mapped.

    A few images are computed by all threads together. Of many, each thread takes its share, one image at a time: no
    thread waits for another within a layer, and the numbers of an image stay in the cache of its core. That needs the
    graph without threads of its own, which is opened from the path at the first such batch.

    With `once`, for a single image, weights are used where they lie in the file: to copy them into memory, in the order
    in which products read them, takes longer than one image gains from it. The last bits of the answer may differ.
    """

    name = "onnxruntime"

    def __init__(self, model: bytes | Path, *, threads: int, called: str = "the graph", once: bool = False) -> None:
        self.once = once
        self.runtime = require("onnxruntime", extra=PACKAGES[self.name][0], purpose="running an ONNX file")
        self.version: str = self.runtime.__version__
        self.called, self.threads = called, threads
        self.path = None if isinstance(model, bytes) else model
        try:
            self.state = _state(self.path)
            self.together: Any | None = self._open(model, threads)
            inputs, outputs = self.together.get_inputs(), self.together.get_outputs()
            names = [value.name for value in inputs]
            self.outputs = tuple(value.name for value in outputs)
            self.properties = dict(self.together.get_modelmeta().custom_metadata_map)
        except Exception as error:  # its errors share no class but this, and names that are not UTF-8 are Python's own
            logging.getLogger("vitrail").debug("ONNX Runtime: %s", error)
            raise CheckpointError(
                f"{called} does not run in ONNX Runtime {self.version}: {' '.join(str(error).split())[:200]}"
            ) from None
        check_inputs(names, called)
        self.input = names[0]
        self.shape, self.kind = _sides(inputs[0].shape), _KINDS.get(inputs[0].type, inputs[0].type)
        self.output_shapes = tuple(_sides(value.shape) for value in outputs)
        self.alone: Any | None = None
        self.used = False
        self.lock = threading.Lock()
        self.pool: ThreadPoolExecutor | None = None

    def run(self, images: np.ndarray, outputs: Sequence[str]) -> list[Any]:
        """Return the named outputs for a batch."""
        try:
            session, pool = self._choose(len(images))
            if pool is None:
                return list(session.run(list(outputs), {self.input: images}))
            parts = pool.map(
                lambda place: session.run(list(outputs), {self.input: images[place : place + 1]}), range(len(images))
            )
            return [np.concatenate(values) for values in zip(*parts, strict=True)]
        except Exception as error:
            raise run_error(self.called, f"ONNX Runtime {self.version}", images, error) from None

    def _choose(self, images: int) -> tuple[Any, ThreadPoolExecutor | None]:
        """Return what computes so many images, and the threads that share them, if they do."""
        with self.lock:
            if self._shares(images):
                if self.alone is None:
                    self.together = self.together if self.used else None  # the weights need not be in memory twice
                    self.alone = self._open(cast("Path", self.path), 1)
                    self.pool = ThreadPoolExecutor(self.threads, thread_name_prefix="onnxruntime")
                return self.alone, self.pool
            if self.together is None and _state(self.path) == self.state:
                self.together = self._open(cast("Path", self.path), self.threads)
            self.used = True
            return self.together or self.alone, None

    def _shares(self, images: int) -> bool:
        """Return whether threads share a batch: not a small one, and not of a file that has changed since."""
        few = self.threads == 1 or images < FEWEST * self.threads
        if self.path is None or few or self.shape[0] is not None:
            return False
        return self.alone is not None or _state(self.path) == self.state

    def _open(self, model: bytes | Path, threads: int) -> Any:
        options = self.runtime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        options.log_severity_level = FATAL
        source = model if isinstance(model, bytes) else os.fspath(model)
        if self.once and self.path is not None:
            file = self.path.resolve()
            with suppress(IndexError, ValueError):  # it is not an ONNX file, which the runtime will say
                source = without_weights(file)
            options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(file.parent))
            options.add_session_config_entry("session.disable_prepacking", "1")
        return self.runtime.InferenceSession(source, options, providers=["CPUExecutionProvider"])


def _state(path: Path | None) -> tuple[int, ...]:
    """Return what changes when a file is written again or removed."""
    try:
        facts = None if path is None else path.stat()
    except OSError:
        facts = None
    if facts is None:
        return ()
    return facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns


def _sides(shape: Sequence[Any]) -> tuple[int | None, ...]:
    return tuple(side if isinstance(side, int) else None for side in shape)
