"""Parts that the formats of PyTorch libraries share: state dicts in safetensors files, and JSON beside them."""

import json
from pathlib import Path
from typing import Any, TypeVar

from vitrail.base import reading
from vitrail.base.container import write_container
from vitrail.base.errors import CheckpointError
from vitrail.base.files import atomic_write
from vitrail.base.tensors import TensorSource
from vitrail.checkpoint.contents import Contents
from vitrail.checkpoint.store import describe

FOLDER_FILES = frozenset({"config.json", "model.safetensors", "preprocessor_config.json"})
"""What is written into the folder of a model."""

Setting = TypeVar("Setting")


def write_state(state: TensorSource, path: Path, contents: Contents | None = None) -> None:
    """Write a state dict; with `contents`, the header states what its tensors cannot: heads, numerics, labels.

    The library that the file is for ignores that; Vitrail reads it, so that a round trip loses nothing.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    metadata = {"format": "pt"}
    if contents is not None:
        metadata["vitrail.origin"] = json.dumps(describe(contents), separators=(",", ":"))
    with atomic_write(path) as file:
        write_container(file, state, metadata, digest=False)


def write_json(path: Path, value: dict[str, Any]) -> None:
    """Write a small JSON file, whole or not at all."""
    with atomic_write(path) as file:
        file.write((json.dumps(value, indent=2) + "\n").encode())


def setting(settings: dict[str, Any], name: str, kind: type[Setting], default: Setting) -> Setting:
    """Return one value of a JSON table, or the default where it is absent or null; a wrong type is refused by name."""
    value = settings.get(name)
    if value is None:
        return default
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise CheckpointError(f"config.json has {name}={value!r}, where {kind.__name__} is needed.")
    return value


def numbers(settings: dict[str, Any], name: str, default: tuple[float, ...]) -> tuple[float, ...]:
    """Return a list of numbers of a JSON table as a tuple."""
    values = setting(settings, name, list, list(default))
    return tuple(setting({name: value}, name, float, 0.0) for value in values)


def read_json(path: Path) -> dict[str, Any]:
    """Read a small JSON file that holds a table."""
    value = reading.read_json(path, CheckpointError)
    if not isinstance(value, dict):
        raise CheckpointError(f"{path} holds a {type(value).__name__}, but a table of settings is needed.")
    return value
