"""Representations on disk: a file for each model, images and preprocessing, named by a digest of all three.

The digest is over the data itself: the weights in memory, and the bytes (or pixels) of every image in order. An
edited image, another model under the same name, or another order of the same images is another digest. Files carry a
SHA-256 of their own, checked whenever they are read.
"""

import hashlib
import json
from pathlib import Path

import numpy as np
import torch

from vitrail.base.container import open_container, write_container
from vitrail.base.errors import CheckpointError, ImageError, WriteError
from vitrail.base.files import atomic_write, cache_folder
from vitrail.base.progress import Progress, silent
from vitrail.base.ranks import Ranks
from vitrail.base.settings import to_dict
from vitrail.base.tensors import from_tensors
from vitrail.data.dataset import Dataset
from vitrail.data.preprocessing import Preprocessing
from vitrail.data.sampler import evaluation_shard
from vitrail.evaluation.features import Features, shared
from vitrail.runtime.engine import Engine

VERSION = 1
"""Goes up whenever the same model and image may give other features: another decoder, another resize."""

_KEY = "vitrail.features"
_DIGEST_BYTES = 32


def default_folder() -> Path:
    """Return where features are stored by default."""
    return cache_folder() / "features"


def feature_key(
    engine: Engine, dataset: Dataset, preprocessing: Preprocessing, ranks: Ranks, progress: Progress = silent
) -> str:
    """Return the digest that names the features of these images; every rank reads its share of them."""
    facts = {
        "version": VERSION,
        "model": engine.digest,
        "preprocessing": to_dict(preprocessing),
        "images": images_digest(dataset, ranks, progress),
    }
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def images_digest(dataset: Dataset, ranks: Ranks, progress: Progress = silent) -> str:
    """Digest the stored bytes or pixels of each image, in order; an unreadable one counts as 32 zeros."""
    table = torch.zeros(len(dataset), _DIGEST_BYTES, dtype=torch.uint8)
    shard = evaluation_shard(len(dataset), rank=ranks.rank, world=ranks.world)
    for index in progress(shard, total=len(shard), title="reading images"):
        try:
            content = dataset.read(index)
        except (OSError, ImageError):
            continue
        table[index] = torch.frombuffer(bytearray(_digest_one(content)), dtype=torch.uint8)
    return hashlib.sha256(shared(table, ranks).numpy().data).hexdigest()


def _digest_one(content: bytes | np.ndarray) -> bytes:
    if isinstance(content, bytes):
        return hashlib.sha256(content).digest()
    digest = hashlib.sha256(f"{content.dtype} {content.shape}\n".encode())
    digest.update(np.ascontiguousarray(content).data)
    return digest.digest()


def features_file(folder: Path, key: str) -> Path:
    """Return where the features of a digest lie."""
    return folder / f"{key}.safetensors"


def read_features(folder: Path, key: str, *, images: int, width: int) -> Features | None:
    """Return stored features; None when there are none, an error when they are damaged."""
    path = features_file(folder, key)
    try:
        if not path.is_file():
            return None
        container = open_container(path, resident=True)
    except OSError as error:
        raise CheckpointError(f"{path} cannot be opened: {error.strerror or error}.") from None
    shapes = {name: spec.shape for name, (spec, _) in container.places.items()}
    expected = {"values": (images, width), "read": (images,)}
    if container.recorded_digest() != container.computed_digest() or container.metadata.get(_KEY) != key:
        raise CheckpointError(f"{path} is damaged: its SHA-256 does not match the one in its header.")
    if shapes != expected:
        raise CheckpointError(f"{path} is damaged: it holds {shapes}, but {expected} was written.")
    return Features(values=container.tensor("values"), read=container.tensor("read").numpy())


def write_features(folder: Path, key: str, features: Features) -> None:
    """Store features, whole or not at all."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WriteError(f"{folder} could not be made: {error.strerror or error}.") from error
    tensors = {"values": features.values, "read": torch.from_numpy(features.read)}
    with atomic_write(features_file(folder, key)) as file:
        write_container(file, from_tensors(tensors, "the features"), {_KEY: key}, digest=True)
