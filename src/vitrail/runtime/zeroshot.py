"""Classes by texts: a model whose features lie in the space of texts answers with the text nearest to an image.

    logits = scale * cos(features, embedding)      (CLIP)

The embeddings come from a program that has the text tower; Vitrail has none.
"""

import hashlib
import math
import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from vitrail.base.errors import ConfigError, InputError
from vitrail.base.shapes import Logits, PixelBatch
from vitrail.data.sources.npz import read_arrays
from vitrail.model.family import ModelConfig
from vitrail.runtime.around import EngineAround
from vitrail.runtime.engine import Engine

Embeddings = Float[Tensor, "class width"]
SCALE = 100.0
"""The factor that CLIP learns before the softmax, at whose upper bound all published ones are."""


@dataclass(frozen=True, kw_only=True, eq=False)
class TextEmbeddings:
    """One vector for each class, in the space into which a model projects images."""

    names: tuple[str, ...]
    """The classes."""
    vectors: Embeddings
    """The vector of each class, of any length above 0."""
    scale: float = SCALE
    """The factor on the cosine."""

    def __post_init__(self) -> None:
        """Refuse what gives no answers."""
        count, width = self.vectors.shape
        if not count or count != len(self.names) or not width:
            raise ConfigError(f"{len(self.names)} names were given for {count} embeddings of {width} numbers.")
        if len(set(self.names)) < count:
            raise ConfigError(
                "two embeddings have the same name; give each class one, such as the mean of several texts."
            )
        lengths = self.vectors.float().norm(dim=1)
        if not bool((lengths.isfinite() & (lengths > 0)).all()):
            raise ConfigError("an embedding is all zeros, or has numbers that are not finite.")
        if not (math.isfinite(self.scale) and self.scale > 0):
            raise ConfigError(f"the scale of the embeddings is {self.scale}, but must be above 0.")

    @cached_property
    def directions(self) -> Embeddings:
        """The vectors with length 1."""
        return F.normalize(self.vectors.float(), dim=1)


def read_text_embeddings(path: str | os.PathLike[str]) -> TextEmbeddings:
    """Read an `.npz` with the arrays `embeddings` (class, width) and `names` (class), and `scale` if it has one."""
    file = Path(path)
    arrays = read_arrays(file, lambda members: _needed(file, members))
    vectors, names, scale = arrays["embeddings"], arrays["names"], arrays.get("scale", np.array(SCALE))
    if vectors.ndim != 2 or vectors.dtype.kind != "f":
        raise InputError(
            f"embeddings of {path} are {vectors.dtype} of the shape {vectors.shape}, but floats of the shape "
            "(classes, width) are needed."
        )
    if names.ndim != 1 or names.dtype.kind != "U":
        raise InputError(f"names of {path} are {names.dtype} of the shape {names.shape}, but a list of text is needed.")
    if scale.size != 1 or scale.dtype.kind not in "uif":
        raise InputError(f"scale of {path} is {scale.dtype} of the shape {scale.shape}, but one number is needed.")
    with np.errstate(over="ignore"):  # what becomes infinite is refused
        narrow = vectors.astype(np.float32)
    try:
        return TextEmbeddings(
            names=tuple(names.tolist()),
            vectors=torch.from_numpy(narrow),
            scale=float(scale.reshape(())),
        )
    except ConfigError as error:
        raise InputError(f"{path}: {error}") from None


def _needed(path: Path, members: set[str]) -> list[str]:
    if not {"embeddings", "names"} <= members:
        listed = ", ".join(sorted(members)[:10]) or "none"
        raise InputError(f"{path} has the arrays {listed}, but embeddings and names are needed.")
    return ["embeddings", "names", *(["scale"] if "scale" in members else [])]


@dataclass(frozen=True, eq=False)
class ZeroShotEngine(EngineAround):
    """An engine whose classes are texts."""

    texts: TextEmbeddings
    """The classes."""

    @property
    def num_outputs(self) -> int:
        """How many texts there are."""
        return len(self.texts.names)

    @property
    def digest(self) -> str:
        """What names the network and the texts."""
        digest = hashlib.sha256(f"{self.engine.digest} {self.texts.names} {self.texts.scale}".encode())
        digest.update(self.texts.directions.numpy().tobytes())
        return digest.hexdigest()

    @torch.inference_mode()
    def logits(self, pixels: PixelBatch) -> Logits:
        """Return the scaled cosine of each image with each text."""
        directions = self.texts.directions.to(self.device)
        return self.texts.scale * F.normalize(self.features(pixels).float(), dim=1) @ directions.T


def zero_shot(engine: Engine, config: ModelConfig | None, texts: TextEmbeddings, called: str) -> ZeroShotEngine:
    """Give a model texts as its classes; one without a projection into the space of texts is refused."""
    width = None if config is None else config.text_width
    if width is None:
        raise InputError(
            f"{called} has no projection into the space of texts, so `text_embeddings` do not fit it; give a CLIP "
            "model with its projection, such as clip-B/32."
        )
    if texts.vectors.shape[1] != width:
        raise InputError(
            f"the text embeddings have {texts.vectors.shape[1]} numbers each, but {called} projects images to {width}; "
            "make them with the text tower of the same model."
        )
    return ZeroShotEngine(engine, texts)
