"""A program of torch.export as an ONNX graph, in one piece."""

import io
import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout

import torch
from torch.export import ExportedProgram

from vitrail.base.errors import InputError
from vitrail.base.extras import require

OPSET = 20
"""The version of ONNX's operations; the first with GELU is 20."""


def onnx_bytes(program: ExportedProgram, names: Sequence[str], *, opset: int = OPSET) -> bytes:
    """Return the content of an ONNX file with outputs of these names and everything inside: no file beside it."""
    for package in ("onnx", "onnxscript"):
        require(package, extra="onnx", purpose="writing an ONNX file")
    with _quiet():
        exported = torch.onnx.export(
            program,
            input_names=["images"],
            output_names=list(names),
            opset_version=opset,
            external_data=False,
            dynamo=True,
            verbose=False,
        )
    if exported is None:
        raise InputError("torch did not return an ONNX program.")
    return exported.model_proto.SerializeToString()


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
