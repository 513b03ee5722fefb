"""Serve models over HTTP: an API that holds under load, and a page that anyone can use."""

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vitrail.base.errors import ConfigError, InputError
from vitrail.base.extras import require
from vitrail.base.notes import Note, logged

if TYPE_CHECKING:
    import torch

    from vitrail.model.contract import Model
    from vitrail.model.patches import Size
    from vitrail.runtime.choice import EngineName, Precision
    from vitrail.serving.server import Server
    from vitrail.serving.watch import Log

File = str | os.PathLike[str]


def serve(
    models: "File | Model | Mapping[str, File | Model]",
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    workers: int | None = None,
    threads: int | None = None,
    batch: int = 4,
    batch_wait: float = 4.0,
    max_queue: int = 64,
    max_wait: float = 1.0,
    max_images: int = 16,
    max_body: int = 32,
    max_pixels: int = 50_000_000,
    timeout: float = 30.0,
    grace: float = 20.0,
    api_key_file: File | None = None,
    cors: tuple[str, ...] = (),
    labels: File | None = None,
    text_embeddings: File | None = None,
    engine: "EngineName | None" = None,
    precision: "Precision | None" = None,
    calibrate: File | None = None,
    merge_tokens: int = 0,
    image_size: "int | Size | None" = None,
    num_heads: int | None = None,
    architecture: str | None = None,
    device: "str | torch.device" = "auto",
    pickle: bool = False,
    log: "Log | None" = None,
    note: Note = logged,
) -> "Server":
    """Start a server for a model, or for several by name, and return it when it answers.

        >>> model = vitrail.create("Ti/16", num_classes=2, image_size=32, seed=0)
        >>> with vitrail.serve(model, port=0, workers=1, note=str) as server:
        ...     list(server.models)
        ['model']

    A model is a file or folder of any format, or one in memory; `engine` and `precision` are what computes, with
    images of `calibrate` for int8; `merge_tokens` lets each block merge that many tokens. The server
    runs in the background, in a thread and in `workers` processes, until the end of the `with` block or `stop()`.
    `port` 0 takes any free port; `url` has it. `log` receives a line of JSON for each request and event. See
    docs/serving.md for the API, the page and the limits.
    """
    for module in ("fastapi", "uvicorn", "python_multipart"):
        require(module, extra="serve", purpose="vitrail serve")
    from vitrail.serving.server import Server
    from vitrail.serving.service import check_names
    from vitrail.serving.settings import ModelSource, ServeSettings
    from vitrail.serving.watch import unlogged

    settings = ServeSettings(
        host=host,
        port=port,
        workers=workers,
        threads=threads,
        batch=batch,
        batch_wait=batch_wait,
        max_queue=max_queue,
        max_wait=max_wait,
        max_images=max_images,
        max_body=max_body,
        max_pixels=max_pixels,
        timeout=timeout,
        grace=grace,
        api_key_file=None if api_key_file is None else os.fspath(api_key_file),
        cors=cors,
    )
    named = _named(models)
    check_names(list(named))
    reading: dict[str, Any] = {
        "labels": None if labels is None else os.fspath(labels),
        "image_size": image_size,
        "num_heads": num_heads,
        "architecture": architecture,
        "pickle": pickle,
        "text_embeddings": None if text_embeddings is None else os.fspath(text_embeddings),
        "engine": engine,
        "precision": precision,
        "calibrate": None if calibrate is None else os.fspath(calibrate),
        "merge_tokens": merge_tokens,
        "batch": batch,
        "device": str(device),
    }
    folder = tempfile.TemporaryDirectory(prefix="vitrail-serve-")  # for models in memory: workers read files
    try:
        sources = {
            name: ModelSource(path=_path(name, model, Path(folder.name)), reading=reading)
            for name, model in named.items()
        }
        return Server(sources, settings, log=log or unlogged, note=note, folder=folder).start()
    except BaseException:
        folder.cleanup()
        raise


def model_name(path: File) -> str:
    """Return what a model is called that was given no name: its file's or folder's, without strange letters."""
    name = Path(os.path.abspath(path))  # noqa: PTH100 - of names that do not exist, too
    stem = name.stem if name.suffix and not name.is_dir() else name.name
    return "".join(letter if (letter.isascii() and letter.isalnum()) or letter in "-_." else "-" for letter in stem)


def _named(models: "File | Model | Mapping[str, File | Model]") -> "dict[str, File | Model]":
    """Return the models by name."""
    if isinstance(models, Mapping):
        if not models:
            raise ConfigError("models is empty; give at least one model.")
        return dict(models)
    return {model_name(models) if isinstance(models, str | os.PathLike) else "model": models}


def _path(name: str, model: "File | Model", folder: Path) -> str:
    """Return the file of a model; one in memory is saved first, and removed when the server stops."""
    if isinstance(model, str | os.PathLike):
        return os.fspath(model)
    from torch import nn

    from vitrail.checkpoint.files import save

    if not isinstance(model, nn.Module):
        raise InputError(
            f"the model {name} is a {type(model).__name__}, but workers read files: give a path or a model in memory."
        )
    save(model, path := folder / f"{name}.safetensors")
    return str(path)
