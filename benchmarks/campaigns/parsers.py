"""The parsers written here, each with a whole file, changes that its format lets through, and its own modules."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import mutations as m
import onnx
from exported import requests, studies
from published_lists import published
from released import released
from specimens import Specimen, archives, arrays, images, tables
from stored import checkpoints, runs

from vitrail.base import container, lines, reading, settings
from vitrail.base.container import open_container
from vitrail.base.settings import from_dict
from vitrail.checkpoint import archive, pickled, plain, program, store, wrappers
from vitrail.checkpoint.archive import open_archive
from vitrail.checkpoint.formats import openclip, shards, timm_infer
from vitrail.checkpoint.pickled import open_pickled
from vitrail.data import index, labels
from vitrail.data.pixels import colours, decode, jpeg, orientation, upper
from vitrail.data.sources import (
    arrays as array_files,
)
from vitrail.data.sources import cifar, columns, idx, indexed, manifest, matlab, tar
from vitrail.data.sources import shards as tar_shards
from vitrail.data.sources import tables as row_tables
from vitrail.evaluation import class_map
from vitrail.published import record
from vitrail.runs.config import RunConfig
from vitrail.runtime import onnx_properties, zeroshot
from vitrail.serving import bodies, keys
from vitrail.studies import lease, plan, study, study_file

Parse = Callable[[Path], Any]


@dataclass(frozen=True, kw_only=True)
class Parser:
    """A parser, the name of the file that it reads, and what it is given first."""

    name: str
    file: str
    data: bytes
    parse: Parse
    mutate: m.Mutate
    modules: tuple[ModuleType, ...]
    """Those whose lines are counted."""
    beside: dict[str, bytes] = field(default_factory=dict)


def parsers() -> list[Parser]:
    """Everything that takes bytes apart here."""
    groups = (images, tables, arrays, archives, published, checkpoints, runs, released, studies, requests)
    known = {specimen.name: specimen for group in groups for specimen in group()}
    lists = (manifest, columns, row_tables)
    chosen: dict[str, tuple[tuple[ModuleType, ...], Parse | None]] = {
        "own header": ((container,), lambda at: _all(open_container(at / "x").source)),
        "own resigned": ((container, store, settings), None),
        "timm": ((container, timm_infer), None),
        "google": ((archive,), lambda at: _all(open_archive(at / "x"))),
        "pth": ((pickled, program, plain, wrappers), lambda at: _all(open_pickled(at / "x").source)),
        "pth old": ((pickled, program, plain, wrappers), lambda at: _all(open_pickled(at / "x").source)),
        "training dino": ((pickled, program, plain, wrappers), lambda at: _all(open_pickled(at / "x").source)),
        "openclip": ((openclip,), None),
        "openclip open_clip_config.json": ((openclip,), None),
        "shards safetensors index": ((shards,), None),
        "zero-shot npz": ((zeroshot, array_files), None),
        "cache pulled.json": ((record, settings), None),
        "run config.json": ((settings,), lambda at: from_dict(RunConfig, reading.read_json(at / "config.json"))),
        "run metrics.jsonl": ((lines,), None),
        "study toml": ((study_file, study), None),
        "study plan": ((plan, settings), None),
        "study claim": ((lease,), None),
        "request json": ((bodies,), None),
        "request multipart": ((bodies,), None),
        "keys": ((keys,), None),
        "csv": (lists, None),
        "csv quoted": (lists, None),
        "json lines": ((manifest, row_tables), None),
        "npz": ((array_files,), None),
        "idx": ((idx,), None),
        "idx.gz": ((idx,), None),
        "cifar": ((cifar,), None),
        "matlab": ((matlab,), None),
        "matlab packed": ((matlab,), None),
        "tar ustar": ((tar, tar_shards), None),
        "tar gnu": ((tar, tar_shards), None),
        "tar pax": ((tar, tar_shards), None),
        "index resigned": ((index, indexed, container), None),
        "labels": ((labels,), None),
        "class map": ((class_map,), None),
        "class map csv": ((class_map,), None),
        "labels text x.txt": ((labels,), None),
        "jpeg": ((jpeg, decode), None),
        "jpeg progressive": ((jpeg, orientation, decode), None),
        "png 16 bits colours": ((upper, decode), None),
        "tiff grey": ((orientation, colours, decode), None),
    }
    return [*(_parser(known[name], modules, parse) for name, (modules, parse) in chosen.items()), _properties()]


def _properties() -> Parser:
    """The texts beside the graph of an ONNX file, which are read without a runtime."""
    proto = onnx.ModelProto(ir_version=10, producer_name="vitrail", graph=onnx.GraphProto(name="graph"))
    onnx.helper.set_model_props(proto, {"vitrail": "{}", "vitrail.digest": "0"})
    return Parser(
        name="onnx properties",
        file="x.onnx",
        data=proto.SerializeToString(),
        parse=lambda at: onnx_properties.read_properties(at / "x.onnx"),
        mutate=m.any_of(m.fields(1)),
        modules=(onnx_properties,),
    )


def _parser(specimen: Specimen, modules: tuple[ModuleType, ...], parse: Parse | None) -> Parser:
    (file, data), *others = specimen.files.items()
    return Parser(
        name=specimen.name,
        file=file,
        data=data,
        parse=parse or specimen.read,
        mutate=m.any_of(specimen.mutate, m.raw),
        modules=modules,
        beside=dict(others),
    )


def _all(source: Any) -> None:
    for name in source:
        source[name]
