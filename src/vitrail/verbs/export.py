"""Export a model as one file that other runtimes run, with everything inside."""

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from vitrail.base.errors import ConfigError, VitrailError
from vitrail.base.notes import Note, logged, unheard
from vitrail.base.outputs import Kind, check_output
from vitrail.base.readable import in_bytes
from vitrail.base.table import Table, Tabular
from vitrail.checkpoint.labels import class_names
from vitrail.data import catalog
from vitrail.data.dataset import Dataset
from vitrail.data.pixels.decode import to_channels
from vitrail.data.transforms import preprocess
from vitrail.evaluation.bootstrap import Interval
from vitrail.model.patches import Size
from vitrail.model.trace import Selection
from vitrail.runtime.card import MARK, Card
from vitrail.runtime.choice import EngineChoice, check_session
from vitrail.runtime.engine import TorchEngine
from vitrail.runtime.exported import Exported, open_exported
from vitrail.runtime.fitting import check_expressible
from vitrail.runtime.graph_engine import exported_engine
from vitrail.runtime.onnx_graph import OPSET, check_opset
from vitrail.runtime.quantise import Calibration, quantise
from vitrail.runtime.write import SUFFIXES, ExportFormat, make_card, write_export
from vitrail.verbs.calibration import read_calibration
from vitrail.verbs.engines import compare
from vitrail.verbs.evaluate import evaluate
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
    accuracies: tuple[tuple[str, Interval], ...] = ()
    """The accuracy in float32 and in int8 with its 95% interval, on calibration data with labels."""
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
            "accuracies": {name: asdict(accuracy) for name, accuracy in self.accuracies},
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
        for name, accuracy in self.accuracies:
            interval = f"{accuracy.value:.1%} ({accuracy.low:.1%} to {accuracy.high:.1%})"
            rows.append((f"accuracy in {name}", interval))
        return [Table(title=str(self.out), columns=("", "value"), rows=tuple(rows), notes=self.notes)]


def export(
    model: ModelLike,
    out: File,
    *,
    format: ExportFormat | None = None,  # noqa: A002  (the word that users know)
    raw: bool = False,
    attention: Selection = None,
    int8: bool = False,
    calibrate: File | Dataset | None = None,
    agreement: float = 99.0,
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

        >>> model = vitrail.create("Ti/16", num_classes=2, image_size=32, seed=0)
        >>> vitrail.export(model, "model.onnx", labels=["ant", "bee"]).format
        'onnx'
        >>> vitrail.predict("model.onnx", numpy.zeros((40, 60, 3), numpy.uint8)).top
        (('ant', 0.5), ('bee', 0.5))

    Inside are the preprocessing (images of any size go in, as uint8 of batch, height, width, channel), the class names,
    and the outputs `logits`, `probabilities`, `top_probabilities`, `top_classes` and `representation`, for any number
    of images at once. `raw` takes the model's own input instead: float32 of batch, channel, height, width, already
    resized and normalised. `attention` adds the attention maps of "all" blocks, or of those in a list (from 0, negative
    ones from the last), as the output `attention`, and beside it `pooling`, the share of each token in what is pooled;
    `vitrail.explain` then shows attention, and with all blocks rollout.

    `int8` quantises: images of `calibrate`, whatever `vitrail.data.open` opens, show the range of every layer, and the
    layers whose quantisation costs most stay in float32 until `agreement` percent of other images of it have the same
    first class. Where they have labels, the accuracy of the model and of the file is measured, with intervals.

    `out` ends in `.onnx`, `.xml` (OpenVINO, with its weights in a `.bin` beside it) or `.pt2` (torch.export), which is
    the `format`. The file is then compared with the model on images of the embedded sample. `vitrail.predict` and
    `vitrail.evaluate` take `.onnx` and `.xml` like any model.
    """
    path = check_output(out, EXPORTED, inputs=(model, labels), force=force, setting="out")
    form = next(name for name, suffix in SUFFIXES.items() if suffix == path.suffix.lower())
    if format not in (None, form):
        raise ConfigError(f"`format` is {format}, but {path} ends in {path.suffix}; end it in {SUFFIXES[format]}.")
    check_opset(opset)
    _check_int8(form, int8, calibrate, agreement)
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
        reduce = None
        if int8 and calibrate is not None:
            images = read_calibration(calibrate, engine.preprocessing, card.entry)
            reduce = partial(_quantise, card=card, images=images, agreement=agreement / 100, note=note)
        card = write_export(engine.model, card, path, form, opset=opset, quantise=reduce)
        same, difference = (None, None) if form == "pt2" else _compared(path, engine)
        scores = _scores(engine, path, calibrate, names) if int8 and names is not None else ()
    return Export(
        out=path,
        format=form,
        precision=card.precision,
        size=sum(part.stat().st_size for part in {path, path.with_suffix(".bin")} if part.is_file()),
        outputs=card.outputs,
        agreement=same if engine.num_outputs else None,
        difference=difference,
        accuracies=scores,
        notes=card.notes,
    )


def _check_int8(form: ExportFormat, int8: bool, calibrate: File | Dataset | None, agreement: float) -> None:
    """Refuse settings of int8 that do not go together."""
    if int8 and form == "pt2":
        raise ConfigError("a program of torch.export cannot be written in int8; end `out` in .onnx or .xml.")
    if int8 != (calibrate is not None):
        raise ConfigError("`int8` needs images to `calibrate` with, and they are for `int8` alone; give both.")
    if not 0 < agreement <= 100:
        raise ConfigError(f"`agreement` is {agreement}, but must be percent, above 0 and at most 100.")
    if int8:
        check_session("onnxruntime")


def _quantise(content: bytes, *, card: Card, images: Calibration, agreement: float, note: Note) -> tuple[bytes, Card]:
    """Turn a graph into int8, and say so on its card."""
    result = quantise(content, images, agreement=agreement, threads=torch.get_num_threads(), note=note)
    kept = f"; {len(result.kept)} stay in float32: {', '.join(result.kept)}" if result.kept else ""
    sentence = (
        f"{result.layers} layers are in int8{kept}; of {len(images.compared)} images {result.agreement:.1%} have the "
        "first class that they have in float32."
    )
    return result.content, replace(card, precision="int8", notes=(*card.notes, sentence))


def _scores(
    engine: TorchEngine, path: Path, data: File | Dataset | None, names: tuple[str, ...]
) -> tuple[tuple[str, Interval], ...]:
    """Measure the accuracy of the model and of the file, where the images have labels that are classes of the model."""
    graph, _ = exported_engine(open_exported(path, EngineChoice(), threads=torch.get_num_threads()))
    scores = []
    for name, network in (("float32", engine), ("int8", graph)):
        try:
            score = evaluate(network, data, labels=names, note=unheard)  # type: ignore[arg-type]
        except VitrailError:
            return ()
        scores.append((name, score.figures["accuracy"]))
    return tuple(scores)


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
