"""The graph of a model in memory, stored in the user's cache by digest: making one takes many seconds."""

import hashlib
import json
from pathlib import Path

import torch

from vitrail.base.errors import VitrailError
from vitrail.base.files import cache_folder, write_whole
from vitrail.base.notes import Note
from vitrail.base.settings import to_dict
from vitrail.data.preprocessing import Preprocessing
from vitrail.model.contract import Model
from vitrail.runtime.card import KEY, NO_DIGEST, check_digest, signed
from vitrail.runtime.engine import TorchEngine
from vitrail.runtime.graph import Graph, make_program
from vitrail.runtime.onnx_graph import onnx_bytes, with_properties

VERSION = 2
"""Goes up whenever the same model makes another graph."""


def stored_graph(model: Model, preprocessing: Preprocessing, note: Note) -> tuple[bytes | Path, str]:
    """Return the ONNX graph of a model that takes pixels, and the digest that names it.

    It is a file in the user's cache, made when it is not there; where none can be written, it is in memory.
    """
    facts = [VERSION, torch.__version__, TorchEngine(model, preprocessing).digest, to_dict(preprocessing)]
    source = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()
    try:
        path = cache_folder() / "graphs" / f"{source}.onnx"
        if path.is_file() and _is_whole(path, note):
            return path, source
    except RuntimeError:  # a user without a home
        path = None
    note("the graph of the model is being made, once; that may take a minute.")
    graph = Graph(model, preprocessing, entry="pixels")
    (content,) = signed([with_properties(onnx_bytes(make_program(graph), graph.names), {f"{KEY}.digest": NO_DIGEST})])
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
