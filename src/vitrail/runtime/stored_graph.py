"""The graph of a model in memory, stored in the user's cache by digest: making one takes many seconds."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from vitrail.base.errors import VitrailError
from vitrail.base.files import cache_folder, write_whole
from vitrail.base.notes import Note
from vitrail.base.settings import to_dict
from vitrail.data.preprocessing import Preprocessing
from vitrail.model.contract import Model
from vitrail.runtime.card import KEY
from vitrail.runtime.digest import NO_DIGEST, check_digest, signed
from vitrail.runtime.engine import TorchEngine
from vitrail.runtime.graph import Graph, make_program
from vitrail.runtime.onnx_graph import onnx_bytes, with_properties
from vitrail.runtime.quantise import Calibration, quantise

VERSION = 3
"""Goes up whenever the same model makes another graph."""
AGREEMENT = 0.99
"""How many of the compared images keep their first class in int8, where the user does not say."""


def stored_graph(
    model: Model, preprocessing: Preprocessing, note: Note, *, merge_tokens: int = 0
) -> tuple[bytes | Path, str]:
    """Return the ONNX graph of a model that takes pixels, and the digest that names it.

    It is a file in the user's cache, made when it is not there; where none can be written, it is in memory.
    """
    network = TorchEngine(model, preprocessing, merge_tokens=merge_tokens)

    def make() -> bytes:
        note("the graph of the model is being made, once; that may take a minute.")
        graph = Graph(model, preprocessing, entry="pixels", merge_tokens=merge_tokens)
        return onnx_bytes(make_program(graph), graph.names)

    return stored([VERSION, torch.__version__, network.digest, to_dict(preprocessing)], make, note)


def stored_int8(
    graph: bytes | Path, source: str, images: Calibration, note: Note, *, agreement: float = AGREEMENT
) -> tuple[bytes | Path, str]:
    """Return a graph in int8, calibrated with images, and the digest that names it; it is stored like the other."""
    shown = hashlib.sha256(images.shown.tobytes()).hexdigest()
    compared = hashlib.sha256(images.compared.tobytes()).hexdigest()

    def make() -> bytes:
        note("the graph is being quantised, once for these images; that may take minutes.")
        content = graph if isinstance(graph, bytes) else graph.read_bytes()
        result = quantise(content, images, agreement=agreement, threads=torch.get_num_threads(), note=note)
        note(result.summary(len(images.compared)))
        return result.content

    return stored([VERSION, source, shown, compared, agreement], make, note)


def stored(facts: list[Any], make: Callable[[], bytes], note: Note) -> tuple[bytes | Path, str]:
    """Return a file of the cache that facts name, made when it is not there, and the digest of the facts."""
    source = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()
    try:
        path = cache_folder() / "graphs" / f"{source}.onnx"
        if path.is_file() and _is_whole(path, note):
            return path, source
    except RuntimeError:  # a user without a home
        path = None
    (content,) = signed([with_properties(make(), {f"{KEY}.digest": NO_DIGEST})])
    if path is not None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, content)
        except (OSError, VitrailError) as error:
            note(f"the graph is used, but not stored: {error}")
        else:
            return path, source
    return content, source


def _is_whole(path: Path, note: Note) -> bool:
    """Return whether a stored graph is as it was written."""
    try:
        if check_digest([path]) is not None:
            return True
    except (OSError, ValueError, VitrailError):  # an empty file cannot be mapped
        pass
    note(f"{path} is damaged, and is made again.")
    return False
