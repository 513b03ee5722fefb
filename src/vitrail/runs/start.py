"""A run that begins with the weights of a file: the file's contents, and the model made from them (Sec. 3.2).

File -> its model -> positions for a new size -> the pre-training head off, a head of zeros on (or one that fits the
images, `first_head.py`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from vitrail.base.errors import InputError
from vitrail.checkpoint.assembly import assemble
from vitrail.checkpoint.contents import Contents
from vitrail.checkpoint.files import read, settled, sha256
from vitrail.checkpoint.transfer import transfer
from vitrail.data.preprocessing import Preprocessing, preset
from vitrail.model.build import build
from vitrail.model.contract import Model
from vitrail.model.family import ModelConfig
from vitrail.model.patches import Size
from vitrail.published.find import find_published
from vitrail.runs.config import StartConfig
from vitrail.training.classification import ClassificationConfig


@dataclass(frozen=True, kw_only=True)
class Source:
    """A model file to start from."""

    start: StartConfig
    config: ModelConfig
    """The model as it is in the file."""
    preprocessing: Preprocessing
    """How images are prepared for it: as the file states, or else as in the reference release."""
    learned_labels: bool = True
    """Whether it learned from labels: unless the file states an objective without them."""

    def adapted(self, *, num_classes: int, image_size: Size | None) -> ModelConfig:
        """Return the model for another task: one linear layer on top, and positions for another size."""
        return self.config.adapted(num_classes=num_classes, image_size=image_size)

    @property
    def backbone(self) -> tuple[str, ...]:
        """Name everything but the head, as patterns to freeze."""
        return build(self.config.adapted(num_classes=2), device="meta").backbone_patterns


def open_source(
    path: str, *, pickle: bool = False, num_heads: int | None = None, architecture: str | None = None
) -> Source:
    """Read a model file's settings and digest."""
    contents = settled(_read(path, pickle, num_heads, architecture))
    size, channels = contents.config.image_size, contents.config.channels
    # an absolute path is found from another working folder too; a published name is
    place = str(Path(path).absolute()) if find_published(path) is None else path
    return Source(
        start=StartConfig(
            path=place,
            digest=_digest(contents, path),
            pickle=pickle,
            num_heads=num_heads,
            architecture=architecture,
        ),
        config=contents.config,
        preprocessing=contents.preprocessing or preset("google", image_size=size, channels=channels),
        learned_labels=_objective(contents) in (None, ClassificationConfig.kind),
    )


def starting_model(start: StartConfig, config: ModelConfig, device: torch.device) -> Model:
    """Load the weights into the model of a run; the head starts at zero even where the classes would fit."""
    contents = _read(start.path, start.pickle, start.num_heads, start.architecture)
    if (digest := _digest(contents, start.path)) != start.digest:
        raise InputError(
            f"{start.path} has changed since this run was set up: its digest is {digest[:12]}, but was "
            f"{start.digest[:12]}; bring back the file, or begin a new run."
        )
    model = assemble(transfer(contents, contents.config.changes_to(config))).float()
    for parameter in model.parameters():
        parameter.data = parameter.data.clone()  # values mapped from the file are read-only
    model.zero_head()
    return model.to(device)


def _read(path: str, pickle: bool, num_heads: int | None, architecture: str | None) -> Contents:
    answers: dict[str, Any] = {"num_heads": num_heads, "architecture": architecture}
    hints = {name: value for name, value in answers.items() if value is not None}
    return read(path, pickle=pickle, **hints)


def _objective(contents: Contents) -> Any:
    """Return what a run that wrote a file minimised, where it states that."""
    place: Any = contents.provenance
    for name in ("config", "objective", "kind"):
        place = place.get(name) if isinstance(place, Mapping) else None
    return place


def _digest(contents: Contents, path: str) -> str:
    """Return the digest that the file carries, or that of its bytes."""
    return contents.digest or sha256(path)
