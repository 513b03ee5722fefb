"""An engine for a model in memory, by name: torch, torch compiled, native, ONNX Runtime or OpenVINO."""

import copy
from dataclasses import replace
from typing import Any

import torch

from vitrail.base.errors import ConfigError
from vitrail.base.notes import Note, unheard
from vitrail.base.processor import has_bfloat16
from vitrail.data.preprocessing import Preprocessing
from vitrail.model.contract import Model
from vitrail.runtime.calibration import read_calibration
from vitrail.runtime.choice import NO_BFLOAT16, EngineChoice, Precision, check_installed, check_session
from vitrail.runtime.engine import Engine, TorchEngine
from vitrail.runtime.graph_engine import GraphEngine
from vitrail.runtime.native_library import load_library
from vitrail.runtime.quantise import check_classes
from vitrail.runtime.stored_graph import stored_graph, stored_int8

DTYPES: dict[Precision, torch.dtype] = {"float32": torch.float32, "bfloat16": torch.bfloat16}
BATCH = 8
"""Images at once where the caller does not say."""


def make_engine(
    engine: TorchEngine,
    choice: EngineChoice,
    *,
    batch: int | None = None,
    note: Note = unheard,
    owned: bool = False,
) -> Engine:
    """Return an engine of the chosen kind and precision with the model of another; that one stays as it is.

    `batch` is how many images will come at once: torch.compile takes that many, and `auto` measures with it. The model
    of an engine that is `owned` is used by nothing else, so that its memory may be taken.
    """
    check_choice(choice, engine.device)
    name = choice.engine or "torch"
    if name == "auto":
        from vitrail.runtime.auto import fastest

        name = fastest(engine, choice, batch=batch or BATCH, note=note)
    if name in ("torch", "compiled"):
        model = _in_precision(engine.model, choice.precision)
        cast = replace(engine, model=model, merge_tokens=choice.merge_tokens)
        return replace(cast, compiled_batch=batch or BATCH) if name == "compiled" else cast
    if name == "native":
        from vitrail.runtime.native_engine import native_engine

        load_library(note)
        own = replace(engine, model=_in_precision(engine.model, "float32"))
        return native_engine(own, choice.precision, owned=owned or own.model is not engine.model)
    return _graph_engine(name, engine.model, engine.preprocessing, choice, note)


def check_choice(choice: EngineChoice, device: torch.device) -> None:
    """Refuse an engine that is not installed, and a precision that this processor or engine does not have."""
    name = choice.engine or "torch"
    outside = name not in ("auto", "torch", "compiled")
    if outside:
        check_installed(name)
    if (outside or choice.precision == "int8") and device.type != "cpu":
        what = f"`engine={name}`" if outside else "int8"
        raise ConfigError(f"{what} computes on the CPU, but the model is on {device}; give `device=cpu`.")
    if choice.precision == "int8":
        if name in ("torch", "compiled"):
            raise ConfigError(
                f"`engine={name}` does not compute in int8; give `engine=auto`, or native, onnxruntime or openvino."
            )
        if choice.calibrate is None and name not in ("auto", "native"):
            raise ConfigError(
                f"int8 in {name} needs images that show the range of every layer; give some like those that the model "
                "will see, a few hundred, as `calibrate`, or `engine=native`, which needs none, or a file that was "
                "exported in int8."
            )
    if name == "native" and choice.calibrate is not None:
        raise ConfigError("`engine=native` finds the range of every token itself in int8; leave out `calibrate`.")
    if name == "native" and choice.merge_tokens:
        raise ConfigError("`engine=native` merges no tokens; leave out `merge_tokens`, or choose another engine.")
    if choice.precision == "bfloat16" and device.type == "cpu":
        if name in NO_BFLOAT16:
            raise ConfigError(f"{NO_BFLOAT16[name]} has no bfloat16 on CPUs; choose another `engine`, or float32.")
        if not has_bfloat16():
            raise ConfigError("this processor has no bfloat16 instructions, and would be slower with it; use float32.")


def _in_precision(model: Model, precision: Precision | None) -> Model:
    """Return the model itself if it has the type already, else a copy."""
    dtype = None if precision is None else DTYPES[precision]
    if dtype is None or next(model.parameters()).dtype == dtype:
        return model
    return copy.deepcopy(model).to(dtype)


def _graph_engine(name: str, model: Model, pixels: Preprocessing, choice: EngineChoice, note: Note) -> GraphEngine:
    """Return an engine for the graph of a model, which is stored for the next time."""
    precision = choice.precision or "float32"
    if precision == "int8":
        check_classes(model.config.num_classes)
    graph, source = stored_graph(_in_precision(model, "float32"), pixels, note, merge_tokens=choice.merge_tokens)
    if precision == "int8" and choice.calibrate is not None:
        check_session("onnxruntime")  # it quantises for both
        graph, source = stored_int8(graph, source, read_calibration(choice.calibrate, pixels, "pixels"), note)
    session: Any
    if name == "onnxruntime":
        from vitrail.runtime.onnxruntime_session import OnnxRuntimeSession

        session = OnnxRuntimeSession(graph, threads=torch.get_num_threads())
    else:
        from vitrail.runtime.openvino_session import OpenVinoSession

        session = OpenVinoSession(graph, threads=torch.get_num_threads(), precision=precision)
    config = model.config
    return GraphEngine(
        session,
        pixels,
        num_outputs=config.num_classes,
        feature_width=config.feature_width,
        source=source,
        precision=precision,
    )
