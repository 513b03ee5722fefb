"""An engine around a graph that another runtime runs."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field

import numpy as np
import torch

from vitrail.base.errors import InputError
from vitrail.base.shapes import Logits, PixelBatch, Representation
from vitrail.data.preprocessing import Preprocessing
from vitrail.data.transforms import normalise
from vitrail.model.info import ModelInfo
from vitrail.runtime.card import Card, Entry
from vitrail.runtime.choice import Precision
from vitrail.runtime.exported import Exported
from vitrail.runtime.session import Session


@dataclass(frozen=True, eq=False)
class GraphEngine:
    """A graph that takes pixels, whole images or a model's input, and runs outside of torch."""

    session: Session
    """What runs it."""
    preprocessing: Preprocessing
    """How an image becomes its input."""
    _: KW_ONLY
    num_outputs: int
    """How many classes there are."""
    feature_width: int
    """How many numbers a representation has; 0 where it is not an output."""
    source: str
    """What names the graph: the digest of the weights or of the file."""
    entry: Entry = "pixels"
    """What goes in."""
    precision: Precision = "float32"
    """The numbers that it computes with."""
    names: Mapping[str, str] = field(default_factory=dict)
    """The graph's own name for each output, where it is another."""
    card: Card | None = None
    """What the file says about itself; None for the graph of a model in memory."""
    concurrent: bool = False
    """The runtime has threads of its own, so that one call at a time keeps all cores busy."""

    @property
    def kind(self) -> str:
        """The name of the runtime."""
        return self.session.name

    @property
    def device(self) -> torch.device:
        """Where it computes."""
        return torch.device("cpu")

    @property
    def dtype(self) -> torch.dtype:
        """The type of the numbers that it computes with."""
        return {"float32": torch.float32, "bfloat16": torch.bfloat16, "int8": torch.int8}[self.precision]

    @property
    def digest(self) -> str:
        """What names the graph, the runtime and its version: another one may round otherwise."""
        facts = f"{self.source} {self.session.name} {self.session.version} {self.precision}"
        return hashlib.sha256(facts.encode()).hexdigest()

    def logits(self, pixels: PixelBatch) -> Logits:
        """Return the score of every class."""
        return self.output("logits", pixels)

    def features(self, pixels: PixelBatch) -> Representation:
        """Return the input of the last linear layer."""
        return self.output("representation", pixels)

    def output(self, name: str, pixels: PixelBatch) -> torch.Tensor:
        """Return one output of the graph for images at the model's size."""
        (values,) = self.some_outputs((name,), pixels)
        return values

    def some_outputs(self, names: Sequence[str], pixels: PixelBatch) -> list[torch.Tensor]:
        """Return several outputs of one pass."""
        own = [self.names.get(name, name) for name in names]
        for name, graph_name in zip(names, own, strict=True):
            if graph_name not in self.session.outputs:
                listed = ", ".join(self.session.outputs)
                raise InputError(
                    f"the graph has no output {name}, only {listed}; export the model with `vitrail export`."
                )
        return [torch.from_numpy(np.asarray(values)) for values in self._run(self.inputs(pixels), own)]

    def _run(self, images: np.ndarray, outputs: Sequence[str]) -> Sequence[np.ndarray]:
        """Send images through the graph: at once, or, where it takes one number of images only, that many at a time."""
        size, count = self.session.shape[0], len(images)
        if size is None or size == count:
            return self.session.run(images, outputs)
        missing = -count % size
        whole = np.concatenate([images, np.repeat(images[-1:], missing, axis=0)]) if missing else images
        parts = [self.session.run(whole[place : place + size], outputs) for place in range(0, count, size)]
        return [np.concatenate(values)[:count] for values in zip(*parts, strict=True)]

    def inputs(self, pixels: PixelBatch) -> np.ndarray:
        """Return what the graph takes for images at the model's size."""
        if self.entry == "input":
            return np.ascontiguousarray(normalise(pixels, self.preprocessing).numpy())
        images = pixels.permute(0, 2, 3, 1).contiguous().numpy()
        return images if self.entry == "pixels" else on_canvas(images, self.preprocessing)


def on_canvas(images: np.ndarray, how: Preprocessing) -> np.ndarray:
    """Put images at the model's size where the graph cuts them out again.

    A graph that resizes and crops leaves an image that is as large as its resized ones as it is, and takes its centre.
    """
    height, width = how.image_size
    whole = how.canvas
    if whole == (height, width):
        return images
    top, left = how.corner(whole)
    canvas = np.zeros((len(images), *whole, images.shape[3]), np.uint8)
    canvas[:, top : top + height, left : left + width] = images
    return canvas


def exported_engine(exported: Exported) -> tuple[GraphEngine, ModelInfo]:
    """Return an engine for an exported file, and what the file says about the model."""
    card = exported.card
    engine = GraphEngine(
        exported.session,
        card.preprocessing,
        num_outputs=card.num_classes,
        feature_width=card.feature_width,
        source=exported.digest,
        entry=card.entry,
        precision=card.precision,
        names=exported.names,
        card=card,
    )
    info = ModelInfo(
        labels=card.labels,
        preprocessing=card.preprocessing,
        provenance=card.provenance,
        digest=exported.digest,
        notes=card.notes,
    )
    return engine, info
