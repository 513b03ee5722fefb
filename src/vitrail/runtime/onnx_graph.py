"""A program of torch.export as an ONNX graph, in one piece."""

import io
import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from typing import Any

import torch
from torch.export import ExportedProgram

from vitrail.base.errors import ConfigError, InputError
from vitrail.base.extras import require
from vitrail.base.numbers import check_whole

OPSET, OLDEST, NEWEST = 20, 18, 23
"""The version of ONNX's operations that is written, and those that can be: 20 is the first with GELU."""
MOST_BYTES = 2**31 - 1
"""What an ONNX file can hold in one piece."""


def onnx_bytes(program: ExportedProgram, names: Sequence[str], *, opset: int = OPSET) -> bytes:
    """Return the content of an ONNX file with outputs of these names and everything inside: no file beside it."""
    check_opset(opset)
    for package in ("onnx", "onnxscript"):
        require(package, extra="onnx", purpose="writing an ONNX file")
    try:
        with _quiet():
            exported = torch.onnx.export(
                program,
                input_names=["images"],
                output_names=list(names),
                opset_version=opset,
                external_data=False,
                dynamo=True,
                verbose=False,
                custom_translation_table={torch.ops.aten.scaled_dot_product_attention.default: _attention},
            )
    except (torch.onnx.OnnxExporterError, RuntimeError) as error:
        raise InputError(
            f"the model has a step that ONNX {opset} cannot express ({' '.join(str(error).split())[:200]}); try a "
            "newer `opset`, or write a .pt2."
        ) from error
    if exported is None:
        raise InputError("torch did not return an ONNX program.")
    proto = exported.model_proto
    if proto.ByteSize() > MOST_BYTES:
        raise InputError(
            "the model has more than 2 GB, which one ONNX file cannot hold; export it for OpenVINO, to a name that "
            "ends in .xml."
        )
    proto.producer_name = "vitrail"
    return proto.SerializeToString()


def check_opset(opset: int) -> None:
    """Refuse a version of ONNX's operations that cannot be written."""
    check_whole("opset", opset)
    if not OLDEST <= opset <= NEWEST:
        raise ConfigError(
            f"`opset` is {opset}, but graphs can be written with {OLDEST} to {NEWEST}; older ones lack operations that "
            "models need."
        )


def with_properties(content: bytes, facts: Mapping[str, str]) -> bytes:
    """Store texts beside the graph of an ONNX file, and check it by the rules of ONNX."""
    onnx = require("onnx", extra="onnx", purpose="writing an ONNX file")
    proto = onnx.load_model_from_string(content)
    onnx.checker.check_model(proto)
    onnx.helper.set_model_props(proto, dict(facts))
    return bytes(proto.SerializeToString())


def _attention(queries: Any, keys: Any, values: Any, bias: Any = None, dropout: float = 0.0, *_: Any, **__: Any) -> Any:
    """Write torch's fused attention as three operations.

    torch's own translation turns the keys over twice, with shapes computed on the way: runtimes neither take that for
    the product with the transposed keys that it is, nor keep it as one.
    """
    if dropout:
        raise RuntimeError("dropout of attention weights")
    op = require("onnxscript", extra="onnx", purpose="writing an ONNX file").opset18
    scale = op.Constant(value_float=float(queries.shape[-1] ** -0.5))
    scores = op.MatMul(op.Mul(queries, scale), op.Transpose(keys, perm=[0, 1, 3, 2]))
    return op.MatMul(op.Softmax(scores if bias is None else op.Add(scores, bias), axis=-1), values)


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence what torch prints and warns while it exports."""
    logs = [logging.getLogger(name) for name in ("torch.onnx", "onnxscript", "onnx_ir")]
    levels = [log.level for log in logs]
    for log in logs:
        log.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(), redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        for log, level in zip(logs, levels, strict=True):
            log.setLevel(level)
