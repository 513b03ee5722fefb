"""Export a model as one file that other runtimes run, with everything inside."""

import mmap
import os
import zipfile
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import torch

from vitrail.base.errors import ConfigError, VitrailError
from vitrail.base.notes import Note, logged, unheard
from vitrail.base.outputs import Kind, check_output
from vitrail.checkpoint.labels import class_names
from vitrail.data import catalog
from vitrail.data.dataset import Dataset
from vitrail.data.pixels.decode import to_channels
from vitrail.data.transforms import preprocess
from vitrail.evaluation.bootstrap import Interval
from vitrail.model.patches import Size
from vitrail.model.trace import Selection
from vitrail.runtime.calibration import read_calibration
from vitrail.runtime.card import KEY, Card
from vitrail.runtime.choice import EngineChoice, check_session
from vitrail.runtime.digest import MARK
from vitrail.runtime.engine import TorchEngine
from vitrail.runtime.exported import Exported, open_exported
from vitrail.runtime.fitting import check_expressible
from vitrail.runtime.graph_engine import exported_engine
from vitrail.runtime.onnx_graph import OPSET, check_opset
from vitrail.runtime.page_folder import check_page, write_page
from vitrail.runtime.quantise import Calibration, check_classes, quantise
from vitrail.runtime.write import SUFFIXES, ExportFormat, make_card, write_export
from vitrail.verbs.agreement import compare
from vitrail.verbs.evaluate import evaluate
from vitrail.verbs.export_result import IMAGES, Export
from vitrail.verbs.network import FileSettings, ModelLike, open_network

File = str | os.PathLike[str]


def _holds(path: Path) -> bool:
    if path.suffix.lower() == SUFFIXES["pt2"]:
        try:
            with zipfile.ZipFile(path) as archive:
                return any(name.endswith(f"/{KEY}.json") for name in archive.namelist())
        except zipfile.BadZipFile:
            return False
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return content.rfind(MARK) >= 0


def _holds_weights(path: Path) -> bool:
    return _holds(path.with_suffix(SUFFIXES["openvino"]))


EXPORTED = Kind(name="an exported model", suffixes=tuple(SUFFIXES.values()), holds=_holds)
WEIGHTS = Kind(name="the weights of an exported model", holds=_holds_weights)


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
    merge_tokens: int = 0,
    page: File | None = None,
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

    `merge_tokens` makes the file faster and less exact: each block merges that many tokens into others that are alike.

    `page` is a folder that gets a page which runs the file in a browser, with onnxruntime-web from npm.

    `out` ends in `.onnx`, `.xml` (OpenVINO, with its weights in a `.bin` beside it) or `.pt2` (torch.export), which is
    the `format`. The file is then compared with the model on images of the embedded sample. `vitrail.predict` and
    `vitrail.evaluate` take `.onnx` and `.xml` like any model.
    """
    inputs = (model, labels, calibrate, *_parts(model))
    path = check_output(out, EXPORTED, inputs=inputs, force=force, setting="out")
    form = next(name for name, suffix in SUFFIXES.items() if suffix == path.suffix.lower())
    if format not in (None, form):
        raise ConfigError(f"`format` is {format}, but {path} ends in {path.suffix}; end it in {SUFFIXES[format]}.")
    if form == "openvino":
        check_output(path.with_suffix(".bin"), WEIGHTS, inputs=inputs, force=force, setting="out")
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
        if page is not None:
            folder = check_page(page, path, raw=raw, classes=engine.num_outputs, force=force)
        names = class_names(labels, network.info.labels, engine.num_outputs)
        for sentence in (*network.notes, *network.head_notes):
            note(sentence)
        card = make_card(
            engine.model,
            engine.preprocessing,
            entry="input" if raw else "image",
            attention=attention,
            merge_tokens=merge_tokens,
            labels=names,
            source=network.digest or engine.digest,
        )
        reduce = None
        if int8 and calibrate is not None:
            check_classes(engine.num_outputs)
            images = read_calibration(calibrate, engine.preprocessing, card.entry)
            reduce = partial(_quantise, card=card, images=images, agreement=agreement / 100, note=note)
        card = write_export(engine.model, card, path, form, opset=opset, quantise=reduce)
        notes = card.notes if page is None else (*card.notes, write_page(folder, path))
        same, difference = (None, None) if form == "pt2" else _compared(path, engine)
        scores = _scores(engine, path, calibrate, names) if int8 and names is not None else ()
    return Export(
        out=path,
        format=form,
        precision=card.precision,
        size=sum(part.stat().st_size for part in ({path, path.with_suffix(".bin")} if form == "openvino" else {path})),
        outputs=card.outputs,
        agreement=same if engine.num_outputs else None,
        difference=difference,
        accuracies=scores,
        notes=notes,
    )


def _parts(model: ModelLike) -> list[Path]:
    """Return the files of a model that is a folder."""
    return list(Path(model).iterdir()) if isinstance(model, str | os.PathLike) and Path(model).is_dir() else []


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
    notes = (*card.notes, result.summary(len(images.compared)))
    return result.content, replace(card, precision="int8", notes=notes)


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
