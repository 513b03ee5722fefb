"""The fastest engine on this machine, measured once for a model, a batch and a number of threads."""

import hashlib
import importlib.metadata
import json
import platform
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch

from vitrail.base.errors import VitrailError
from vitrail.base.files import cache_folder, write_whole
from vitrail.base.notes import Note
from vitrail.base.processor import describe_processor
from vitrail.runtime.choice import PACKAGES, EngineChoice, EngineName, Precision, install_command, missing_packages
from vitrail.runtime.engine import TorchEngine
from vitrail.runtime.timing import time_engine

CANDIDATES: tuple[EngineName, ...] = ("torch", "compiled", "onnxruntime", "openvino")
MOST_ANSWERS = 256
"""Measurements that are stored; older ones make room."""


def fastest(engine: TorchEngine, precision: Precision | None, *, batch: int, note: Note) -> EngineName:
    """Return the name of the fastest engine for a model; elsewhere than on a CPU that is torch."""
    if engine.device.type != "cpu":
        return "torch"
    for name in PACKAGES:
        if missing_packages(name):
            note(f"{name} is not installed and was not tried; to have it, run `{install_command(name)}`.")
    key = _key(engine, precision, batch)
    stored = _stored().get(key)
    if isinstance(stored, dict) and stored.get("engine") in CANDIDATES and not missing_packages(stored["engine"]):
        return stored["engine"]
    note(f"every engine is measured once with {batch} images at a time; that takes minutes, and is stored.")
    speeds = _measured(engine, precision, batch, note)
    best = max(speeds, key=lambda name: speeds[name])
    note(f"{best} is the fastest: " + ", ".join(f"{name} {speed:.1f} images/s" for name, speed in speeds.items()) + ".")
    _store(key, {"engine": best, "images_per_second": speeds})
    return best


def _measured(engine: TorchEngine, precision: Precision | None, batch: int, note: Note) -> dict[EngineName, float]:
    """Return the images in a second of every engine that is installed and runs the model."""
    from vitrail.runtime.make import make_engine

    speeds: dict[EngineName, float] = {}
    for name in CANDIDATES:
        if missing_packages(name):
            continue
        try:
            candidate = make_engine(engine, EngineChoice(engine=name, precision=precision), batch=batch, note=note)
            speeds[name] = time_engine(candidate, batch, seconds=1.0).images_per_second
        except (VitrailError, RuntimeError) as error:  # a compiler that is missing, a graph that cannot be written
            if name == "torch":
                raise
            note(f"{name} does not run this model and was left out: {' '.join(str(error).split())[:200]}")
    return speeds


def machine_facts() -> dict[str, Any]:
    """Return what the speed of an engine depends on, besides the model."""
    processor = describe_processor()
    versions = {}
    for package in ("torch", "onnxruntime", "openvino"):
        with suppress(importlib.metadata.PackageNotFoundError):
            versions[package] = importlib.metadata.version(package)
    named = {name: processor.get(name, "") for name in ("model name", "flags", "Features")}
    return {"machine": platform.machine(), **named, "threads": torch.get_num_threads(), "versions": versions}


def _key(engine: TorchEngine, precision: Precision | None, batch: int) -> str:
    facts = [engine.digest, precision, batch, machine_facts()]
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def _file() -> Path:
    return cache_folder() / "engines.json"


def _stored() -> dict[str, Any]:
    """Return the stored measurements; a file that is missing or damaged has none."""
    with suppress(OSError, ValueError, RecursionError, RuntimeError):
        answers = json.loads(_file().read_text(encoding="utf-8"))
        return answers if isinstance(answers, dict) else {}
    return {}


def _store(key: str, answer: Mapping[str, Any]) -> None:
    """Store a measurement; where nothing can be written it is made again."""
    with suppress(VitrailError, OSError, RuntimeError):
        _file().parent.mkdir(parents=True, exist_ok=True)
        answers = dict(list(_stored().items())[1 - MOST_ANSWERS :]) | {key: answer}
        write_whole(_file(), json.dumps(answers, indent=1).encode())
