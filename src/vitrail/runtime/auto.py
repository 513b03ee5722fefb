"""The fastest engine on this machine, measured once for a model, a batch and a number of threads."""

import hashlib
import importlib.metadata
import json
import platform
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from vitrail.base.errors import ConfigError, VitrailError
from vitrail.base.files import cache_folder, write_whole
from vitrail.base.notes import Note
from vitrail.base.processor import describe_processor
from vitrail.runtime.choice import NO_BFLOAT16, EngineChoice, EngineName, install_command, missing_packages
from vitrail.runtime.engine import TorchEngine
from vitrail.runtime.timing import time_engine

CANDIDATES: tuple[EngineName, ...] = ("torch", "compiled", "native", "onnxruntime", "openvino")
QUANTISED: tuple[EngineName, ...] = ("native", "onnxruntime", "openvino")
"""Those that compute in int8; all but native need images to calibrate with."""
VERSION = 4
"""Goes up whenever an engine computes in another way, so that former measurements are not taken."""
MOST_ANSWERS = 256
"""Measurements that are stored; older ones make room."""


def fastest(engine: TorchEngine, choice: EngineChoice, *, batch: int, note: Note) -> EngineName:
    """Return the name of the fastest engine for a model; elsewhere than on a CPU that is torch."""
    if engine.device.type != "cpu":
        return "torch"
    names = [name for name in CANDIDATES if fitting(choice, name) is not None]
    for name in names:
        if missing_packages(name):
            note(f"{name} is not installed and was not tried; to have it, run `{install_command(name)}`.")
    key = _key(engine, choice, batch)
    stored = _stored().get(key)
    if isinstance(stored, dict) and stored.get("engine") in names and not missing_packages(stored["engine"]):
        return stored["engine"]
    if sum(not missing_packages(name) for name in names) > 1:
        note(f"every engine is measured once with {batch} images at a time; that takes minutes, and is stored.")
    speeds = _measured(engine, choice, names, batch, note)
    if not speeds:
        more = "" if choice.calibrate else ", or give images as `calibrate` for other engines"
        raise ConfigError(f"no engine of {', '.join(names)} runs this model in int8; use float32{more}.")
    best = max(speeds, key=lambda name: speeds[name])
    measured = ", ".join(f"{name} {speed:.1f} images/s" for name, speed in speeds.items())
    note(f"{best} is the {'fastest' if len(speeds) > 1 else 'only one'}: {measured}.")
    _store(key, {"engine": best, "images_per_second": speeds})
    return best


def fitting(choice: EngineChoice, name: EngineName) -> EngineChoice | None:
    """Return a choice for one engine, without what that engine does not need; None where it cannot have it."""
    native, precision = name == "native", choice.precision
    impossible = (
        (native and choice.merge_tokens > 0)
        or (precision == "bfloat16" and name in NO_BFLOAT16)
        or (precision == "int8" and (name not in QUANTISED or (choice.calibrate is None and not native)))
    )
    if impossible:
        return None
    return replace(choice, engine=name, calibrate=None if native else choice.calibrate)


def _measured(
    engine: TorchEngine, choice: EngineChoice, names: list[EngineName], batch: int, note: Note
) -> dict[EngineName, float]:
    """Return the images in a second of every engine that is installed and runs the model."""
    from vitrail.runtime.make import make_engine

    speeds: dict[EngineName, float] = {}
    for name in names:
        own = fitting(choice, name)
        if own is None or missing_packages(name):
            continue
        try:
            candidate = make_engine(engine, own, batch=batch, note=note)
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


def _key(engine: TorchEngine, choice: EngineChoice, batch: int) -> str:
    facts = [VERSION, engine.digest, choice.precision, choice.merge_tokens, batch, machine_facts()]
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
