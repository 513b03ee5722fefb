"""A graph in int8: static quantisation by ONNX Runtime's quantiser, with layers left in float32 where it costs most.

Products with weights are quantised, each output channel with a scale of its own; activations by the ranges that
calibration images show. Resizing, attention products, norms and softmax stay in float32. Weights have seven bits, so
that processors without VNNI, whose sums of 16 bits would overflow, give the same numbers.
"""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from vitrail.base.errors import ConfigError
from vitrail.base.extras import require
from vitrail.base.notes import Note
from vitrail.runtime.onnxruntime_session import OnnxRuntimeSession

KINDS = ("MatMul", "Gemm", "Conv")
BATCH = 8
PROBES = 16
"""Images by which the cost of a layer is measured."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Calibration:
    """Images for quantisation, as the graph takes them."""

    shown: np.ndarray
    """Those that show the range of every layer."""
    compared: np.ndarray
    """Others, by which the answers are compared."""


@dataclass(frozen=True, kw_only=True)
class Quantised:
    """A graph in int8."""

    content: bytes
    """The content of an ONNX file."""
    agreement: float
    """The share of compared images with the first class of the graph in float32."""
    layers: int
    """Layers that are quantised."""
    kept: tuple[str, ...]
    """Layers that stay in float32, the costliest first."""

    def summary(self, images: int) -> str:
        """Say in a sentence what was done, and how many of the compared images keep their first class."""
        kept = f"; {len(self.kept)} stay in float32: {', '.join(self.kept)}" if self.kept else ""
        return (
            f"{self.layers} layers are in int8{kept}; of {images} images {self.agreement:.1%} have the first class "
            "that they have in float32."
        )


def check_classes(classes: int) -> None:
    """Refuse a model without classes, since it is by first classes that layers are left in float32."""
    if not classes:
        raise ConfigError("int8 is checked by the first class of images, but the model has no classes; use float32.")


def quantise(content: bytes, images: Calibration, *, agreement: float, threads: int, note: Note) -> Quantised:
    """Quantise a graph; until `agreement` is reached, from 0 to 1, the costliest layers stay in float32."""
    onnx = require("onnx", extra="onnx", purpose="quantising a graph")
    graph = onnx.load_model_from_string(content)
    layers = _layers(graph)
    if not layers:
        raise ConfigError("the graph has no products with weights that can be quantised; export it in float32.")
    ranges = _ranges(content, images.shown)
    expected = _logits(content, images.compared, threads)

    def attempt(nodes: Sequence[str]) -> tuple[bytes, np.ndarray]:
        quantised = _quantised(onnx.load_model_from_string(content), ranges, nodes)
        return quantised, _logits(quantised, images.compared, threads)

    best, logits = attempt(list(layers))
    reached = _agreement(logits, expected)
    if reached >= agreement:
        return Quantised(content=best, agreement=reached, layers=len(layers), kept=())
    note(f"in int8 {reached:.1%} of the images have the same first class; the costliest layers are looked for.")
    order = _by_cost(layers, lambda node: attempt_few(onnx, content, ranges, node, images, threads), expected)
    low, high = 0, len(order)
    while high - low > 1:  # more layers in float32, more agreement
        middle = (low + high) // 2
        some, logits = attempt([node for node in layers if node not in order[:middle]])
        share = _agreement(logits, expected)
        if share >= agreement:
            high, best, reached = middle, some, share
        else:
            low = middle
    if high == len(order):
        raise ConfigError(
            f"even with one layer in int8 fewer than {agreement:.1%} of the images have the same first class; "
            "export it with a lower `agreement`, or use float32."
        )
    names = tuple(layers[node] for node in order[:high])
    return Quantised(content=best, agreement=reached, layers=len(layers) - high, kept=names)


def attempt_few(onnx: Any, content: bytes, ranges: Any, node: str, images: Calibration, threads: int) -> np.ndarray:
    """Return the logits of a few images with one layer quantised."""
    return _logits(_quantised(onnx.load_model_from_string(content), ranges, [node]), images.compared[:PROBES], threads)


def _by_cost(layers: dict[str, str], measure: Callable[[str], np.ndarray], expected: np.ndarray) -> list[str]:
    """Return the layers by how far each alone moves the logits, the farthest first."""
    costs = {node: float(np.square(measure(node) - expected[:PROBES]).mean()) for node in layers}
    return sorted(costs, key=lambda node: -costs[node])


def _layers(graph: Any) -> dict[str, str]:
    """Return the products with weights of a graph: the name of the node, and that of the layer in the model."""
    weights = {tensor.name for tensor in graph.graph.initializer}
    return {
        node.name: _layer(node)
        for node in graph.graph.node
        if node.op_type in KINDS and len(node.input) > 1 and node.input[1] in weights
    }


def _layer(node: Any) -> str:
    """Return the name of the module that a node comes from, as torch's exporter notes it, or the node's own."""
    scopes = next((entry.value for entry in node.metadata_props if entry.key.endswith("name_scopes")), "")
    modules = [part.strip(" '\"[]") for part in scopes.split(",")]
    named = [module.removeprefix("model.") for module in modules[:-1] if module not in ("", "model")]
    return named[-1] if named else node.name


def _ranges(content: bytes, images: np.ndarray) -> Any:
    """Return the range of every tensor beside a product, over all the images."""
    tools = require("onnxruntime.quantization", extra="onnx", purpose="quantising a graph")
    with tempfile.TemporaryDirectory(prefix="vitrail-") as folder:
        path = Path(folder) / "float.onnx"
        path.write_bytes(content)
        calibrator = tools.create_calibrator(path, KINDS, augmented_model_path=f"{folder}/augmented.onnx")
        calibrator.collect_data(_Reader(images))
        return calibrator.compute_data()


class _Reader:
    """Images in batches, as ONNX Runtime's calibrator asks for them."""

    def __init__(self, images: np.ndarray) -> None:
        self.batches: Iterator[np.ndarray] = iter([images[at : at + BATCH] for at in range(0, len(images), BATCH)])

    def get_next(self) -> dict[str, np.ndarray] | None:
        """Return the next batch, or None after the last."""
        batch = next(self.batches, None)
        return None if batch is None else {"images": batch}

    def __iter__(self) -> "_Reader":
        """Return itself."""
        return self

    def __next__(self) -> dict[str, np.ndarray]:
        """Return the next batch."""
        batch = self.get_next()
        if batch is None:
            raise StopIteration
        return batch


def _quantised(graph: Any, ranges: Any, nodes: Sequence[str]) -> bytes:
    """Return the graph with some of its nodes in int8."""
    tools = require("onnxruntime.quantization.qdq_quantizer", extra="onnx", purpose="quantising a graph")
    kinds = require("onnxruntime.quantization", extra="onnx", purpose="quantising a graph").QuantType
    quantiser = tools.QDQQuantizer(
        graph,
        True,  # a scale for each output channel
        True,  # seven bits
        kinds.QInt8,
        kinds.QUInt8,
        ranges,
        list(nodes),
        [],
        list(KINDS),
        {},
    )
    quantiser.quantize_model()
    quantiser.model.topological_sort()
    return bytes(quantiser.model.model.SerializeToString())


def _logits(content: bytes, images: np.ndarray, threads: int) -> np.ndarray:
    session = OnnxRuntimeSession(content, threads=threads)
    parts = [session.run(images[at : at + BATCH], ["logits"])[0] for at in range(0, len(images), BATCH)]
    return np.concatenate(parts)


def _agreement(ours: np.ndarray, theirs: np.ndarray) -> float:
    return float((ours.argmax(1) == theirs.argmax(1)).mean())
