"""Exported files: a graph with everything around it, as ONNX, for OpenVINO, or as a program of torch.export."""

import io
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import torch

from vitrail.base.errors import ConfigError
from vitrail.base.extras import require
from vitrail.base.files import write_whole
from vitrail.checkpoint.store import versions
from vitrail.data.preprocessing import Preprocessing
from vitrail.model.contract import Model
from vitrail.model.trace import Selection
from vitrail.runtime.card import KEY, Card, Entry
from vitrail.runtime.digest import NO_DIGEST, signed
from vitrail.runtime.graph import Graph, attention_blocks, make_program
from vitrail.runtime.onnx_graph import OPSET, onnx_bytes, with_properties

ExportFormat = Literal["onnx", "openvino", "pt2"]
SUFFIXES: dict[ExportFormat, str] = {"onnx": ".onnx", "openvino": ".xml", "pt2": ".pt2"}
Quantise = Callable[[bytes], tuple[bytes, Card]]
"""Turns the content of an ONNX file in float32 into one in int8, with the card that says so."""


def write_export(
    model: Model,
    card: Card,
    out: Path,
    form: ExportFormat,
    *,
    opset: int = OPSET,
    quantise: Quantise | None = None,
) -> Card:
    """Write a model, whole or not at all, and return the card of the file."""
    graph = Graph(
        model, card.preprocessing, entry=card.entry, attention=card.attention_blocks, merge_tokens=card.merge_tokens
    )
    program = make_program(graph)
    if form == "pt2":
        buffer = io.BytesIO()
        facts = {f"{KEY}.json": card.text()}
        torch.export.save(program, buffer, extra_files=facts)
        write_whole(out, buffer.getvalue())
        return card
    content = onnx_bytes(program, graph.names, opset=opset)
    del program
    if quantise is not None:
        content, card = quantise(content)
    facts = {KEY: card.text(), f"{KEY}.digest": NO_DIGEST}
    if form == "onnx":
        (content,) = signed([with_properties(content, facts)])
        write_whole(out, content)
    else:
        _write_openvino(content, facts, out)
    return card


def _write_openvino(content: bytes, facts: dict[str, str], out: Path) -> None:
    """Write the two files of OpenVINO: the graph, and its weights beside it."""
    runtime = require("openvino", extra="openvino", purpose="writing an OpenVINO file")
    graph = runtime.Core().read_model(content)
    graph.set_rt_info(facts[KEY], [KEY, "card"])
    graph.set_rt_info(facts[f"{KEY}.digest"], [KEY, "digest"])
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=f".{out.name[:80]}.") as folder:
        path = Path(folder) / "graph.xml"
        runtime.save_model(graph, path, compress_to_fp16=False)
        xml, weights = signed([path.read_bytes(), path.with_suffix(".bin").read_bytes()])
    write_whole(out.with_suffix(".bin"), weights)
    write_whole(out, xml)


def make_card(
    model: Model,
    preprocessing: Preprocessing,
    *,
    entry: Entry,
    attention: Selection = None,
    merge_tokens: int = 0,
    labels: tuple[str, ...] | None,
    source: str | None,
) -> Card:
    """Gather what a file will say about a model."""
    config = model.config
    if entry != "input" and preprocessing.image_size != config.image_size:
        raise ConfigError(
            f"preprocessing makes images of {preprocessing.image_size}, but the model takes {config.image_size}."
        )
    blocks = attention_blocks(config, attention)
    graph = Graph(model, preprocessing, entry=entry, attention=blocks, merge_tokens=merge_tokens)
    merged = (f"each block merges {merge_tokens} tokens into others that are alike.",) if merge_tokens else ()
    return Card(
        entry=entry,
        preprocessing=preprocessing,
        num_classes=config.num_classes,
        feature_width=config.feature_width,
        outputs=tuple(graph.names),
        labels=labels,
        model=config.summary,
        grid=config.grid,
        prefix=config.num_prefix,
        attention_shape=config.attention_shape,
        attention_blocks=blocks,
        merge_tokens=merge_tokens,
        source=source,
        versions=versions(),
        provenance=json.loads(json.dumps(dict(model.info.provenance), default=str)),
        notes=merged,
    )
