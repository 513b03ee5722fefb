"""Export a model as one file that other runtimes run, with everything inside."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from vitrail.base.errors import ConfigError
from vitrail.base.notes import Note, logged
from vitrail.base.outputs import Kind, check_output
from vitrail.base.readable import in_bytes
from vitrail.base.table import Table, Tabular
from vitrail.checkpoint.labels import class_names
from vitrail.data import catalog
from vitrail.data.pixels.decode import to_channels
from vitrail.data.transforms import preprocess
from vitrail.model.patches import Size
from vitrail.runtime.card import MARK
from vitrail.runtime.choice import EngineChoice
from vitrail.runtime.engine import TorchEngine
from vitrail.runtime.exported import Exported, open_exported
from vitrail.runtime.fitting import check_expressible
from vitrail.runtime.graph_engine import exported_engine
from vitrail.runtime.onnx_graph import OPSET, check_opset
from vitrail.runtime.write import SUFFIXES, ExportFormat, make_card, write_export
from vitrail.verbs.engines import compare
from vitrail.verbs.network import FileSettings, ModelLike, open_network

File = str | os.PathLike[str]
IMAGES = 32
"""Images of the embedded sample on which the file is compared with the model."""


def _holds(path: Path) -> bool:
    return path.suffix.lower() == ".pt2" or MARK in path.read_bytes()


EXPORTED = Kind(name="an exported model", suffixes=tuple(SUFFIXES.values()), holds=_holds)


@dataclass(frozen=True, kw_only=True, repr=False)
class Export(Tabular):
    """An exported file, and how it compares with the model."""

    out: Path
    """The file; OpenVINO has its weights beside it, in a `.bin`."""
    format: ExportFormat
    """onnx, openvino or pt2."""
    precision: str
    """The numbers that it computes with."""
    size: int
    """Bytes."""
    outputs: tuple[str, ...]
    """What the graph returns."""
    agreement: float | None
    """The share of images with the same first class as the model gives, resized by the graph itself; None where the
    file was not run, or has no classes."""
    difference: float | None
    """The largest difference of a logit, for the same pixels, as a share of their range."""
    notes: tuple[str, ...] = ()
    """What was done, a sentence each."""

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values for JSON."""
        return {
            "out": str(self.out),
            "format": self.format,
            "precision": self.precision,
            "size": self.size,
            "outputs": list(self.outputs),
            "agreement": self.agreement,
            "difference": self.difference,
            "notes": list(self.notes),
        }

    def tables(self) -> list[Table]:
        """Return one table."""
        rows = [
            ("format", f"{self.format}, {self.precision}"),
            ("size", in_bytes(self.size)),
            ("outputs", ", ".join(self.outputs)),
        ]
        if self.agreement is not None:
            rows.append(("same first class as the model", f"{self.agreement:.1%} of {IMAGES} images of the sample"))
        if self.difference is not None:
            rows.append(("largest difference of a logit", f"{self.difference:.1e} of their range"))
        return [Table(title=str(self.out), columns=("", "value"), rows=tuple(rows), notes=self.notes)]


def export(
    model: ModelLike,
    out: File,
    *,
    format: ExportFormat | None = None,  # noqa: A002  (the word that users know)
    raw: bool = False,
    attention: bool = False,
    opset: int = OPSET,
    labels: Sequence[str] | File | None = None,
    force: bool = False,
    image_size: int | Size | None = None,
    num_heads: int | None = None,
    architecture: str | None = None,
    pickle: bool = False,
    threads: int | None = None,
    note: Note = logged,
) -> Export:
    """Write a model as a file that ONNX Runtime, OpenVINO or torch run without Vitrail.

    Inside are the preprocessing (images of any size go in, as uint8 of batch, height, width, channel), the class names,
    and the outputs `logits`, `probabilities`, `top_probabilities`, `top_classes` and `representation`, for any number
    of images at once. `raw` takes the model's own input instead: float32 of batch, channel, height, width, already
    resized and normalised. `attention` adds the attention maps of every block as an output.

    `out` ends in `.onnx`, `.xml` (OpenVINO, with its weights in a `.bin` beside it) or `.pt2` (torch.export), which is
    the `format`. The file is then compared with the model on images of the embedded sample. `vitrail.predict` and
    `vitrail.evaluate` take `.onnx` and `.xml` like any model.
    """
    path = check_output(out, EXPORTED, inputs=(model, labels), force=force, setting="out")
    form = next(name for name, suffix in SUFFIXES.items() if suffix == path.suffix.lower())
    if format not in (None, form):
        raise ConfigError(f"`format` is {format}, but {path} ends in {path.suffix}; end it in {SUFFIXES[format]}.")
    check_opset(opset)
    file = FileSettings(
        image_size=image_size, num_heads=num_heads, architecture=architecture, pickle=pickle, device="cpu"
    )
    with open_network(model, file=file, threads=threads, note=note, float32=True) as (network, _):
        engine = network.engine
        if not isinstance(engine, TorchEngine):
            raise ConfigError(f"{network.name} is a graph already; export the model that it was made from.")
        if not raw:
            check_expressible(engine.preprocessing)
        names = class_names(labels, network.info.labels, engine.num_outputs)
        for sentence in (*network.notes, *network.head_notes):
            note(sentence)
        card = make_card(
            engine.model,
            engine.preprocessing,
            entry="input" if raw else "image",
            attention=attention,
            labels=names,
            source=network.digest or engine.digest,
        )
        write_export(engine.model, card, path, form, opset=opset)
        agreement, difference = (None, None) if form == "pt2" else _compared(path, engine)
    return Export(
        out=path,
        format=form,
        precision=card.precision,
        size=sum(part.stat().st_size for part in {path, path.with_suffix(".bin")} if part.is_file()),
        outputs=card.outputs,
        agreement=agreement if engine.num_outputs else None,
        difference=difference,
    )


def _compared(path: Path, engine: TorchEngine) -> tuple[float | None, float | None]:
    """Compare a file with the model: first classes for whole images, and logits for the same pixels."""
    exported = open_exported(path, EngineChoice(), threads=torch.get_num_threads())
    other, _ = exported_engine(exported)
    dataset = catalog.open("sample", split="test")
    images = [to_channels(dataset.image(index * 31), engine.preprocessing.channels) for index in range(IMAGES)]
    pixels = torch.stack([preprocess(image, engine.preprocessing) for image in images])
    expected = (engine.logits if engine.num_outputs else engine.features)(pixels).numpy()
    same = (other.logits if engine.num_outputs else other.features)(pixels).numpy()
    _, difference = compare(same, expected)
    if not engine.num_outputs or exported.card.entry != "image":
        return compare(same, expected)[0], difference
    whole = np.stack([image.permute(1, 2, 0).numpy() for image in images])
    return compare(_logits(exported, whole), expected)[0], difference


def _logits(exported: Exported, images: np.ndarray) -> np.ndarray:
    (logits,) = exported.session.run(images, ["logits"])
    return np.asarray(logits)
