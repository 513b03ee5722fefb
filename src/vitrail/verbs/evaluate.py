"""Measure a model on data: accuracy with its interval, classes, confusions, calibration."""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch

from vitrail.base.errors import ConfigError, InputError
from vitrail.base.memory import keep_freed_memory
from vitrail.base.notes import Note, logged
from vitrail.base.outputs import check_output
from vitrail.base.progress import Progress, silent
from vitrail.checkpoint.labels import class_names
from vitrail.data.dataset import Dataset
from vitrail.data.preprocessing import Preprocessing
from vitrail.evaluation.class_map import ClassMap, read_class_map
from vitrail.evaluation.evaluation import Evaluation, EvaluationConfig
from vitrail.evaluation.evaluation import evaluate as measure
from vitrail.evaluation.predictions import EVALUATED, write_predictions
from vitrail.evaluation.real import RealLists, check_outputs, choose_with_real, read_real
from vitrail.evaluation.subset import Choice, choose
from vitrail.model.patches import Size
from vitrail.report.evaluation_page import EVALUATION, write_evaluation
from vitrail.runtime.choice import EngineChoice, EngineName, Precision
from vitrail.runtime.zeroshot import TextEmbeddings
from vitrail.verbs.evaluation_page import evaluation_page
from vitrail.verbs.network import FileSettings, ModelLike, Network, open_network, with_texts
from vitrail.verbs.networks import open_data

File = str | os.PathLike[str]


def evaluate(
    model: ModelLike,
    data: File | Dataset,
    *,
    split: str | None = None,
    labels: Sequence[str] | File | None = None,
    text_embeddings: TextEmbeddings | File | None = None,
    class_map: ClassMap | File | None = None,
    all_classes: bool = False,
    real: RealLists | File | None = None,
    preprocessing: Preprocessing | None = None,
    image_size: int | Size | None = None,
    num_heads: int | None = None,
    architecture: str | None = None,
    batch: int = 64,
    resamples: int = 1000,
    seed: int = 0,
    skip_broken: str = "0",
    root: File | None = None,
    csv: File | None = None,
    html: File | None = None,
    force: bool = False,
    pickle: bool = False,
    workers: int = 0,
    threads: int | None = None,
    device: str | torch.device = "auto",
    engine: EngineName | None = None,
    precision: Precision | None = None,
    calibrate: File | None = None,
    merge_tokens: int = 0,
    progress: Progress = silent,
    note: Note = logged,
) -> Evaluation:
    """Measure a model on data that it has not learned from.

        >>> model = vitrail.create("Ti/14", num_classes=10, image_size=28, channels=1, seed=0)
        >>> data = vitrail.data.open("sample", split="test")
        >>> score = vitrail.evaluate(model, data, labels=data.labels)  # a file has class names of its own
        >>> score.accuracy, score.confusion.shape, score.figures["loss"].high
        (0.1, (10, 10), 2.302...)

    `model` is a file of any format, a model in memory, a `Classifier`, or any engine; `data` is whatever
    `vitrail.data.open` opens, or what it returned. Without a `split` it is test, else val, else everything; of the
    images that a model was trained on, those that its run held out. Classes are matched by name: `labels` are the
    model's, as a list or a file; `class_map` gives the classes of the model for a class of the data;
    `all_classes` keeps the classes that the data lacks among the answers. `text_embeddings` are the classes of a CLIP
    model with its projection: an `.npz` with `embeddings` and `names`. `real` is ImageNet-ReaL's `real.json`.

    A model in memory computes where it is; `image_size`, `num_heads`, `pickle` and `device` are for files. Files and
    models are measured in float32, classifiers and engines as they are; `engine` and `precision` choose what computes,
    with images of `calibrate` for int8; `merge_tokens` lets each block merge that many tokens: faster, less exact.
    `resamples` are behind the intervals, and
    `skip_broken` is how many images may be unreadable, such as `5` or `1%`. `csv` gets every prediction, and `html` a
    page; a file of another kind is replaced only with `force`. Under torchrun ranks share the images, and every rank
    returns the same.
    """
    files = {
        name: check_output(
            file, kind, inputs=(model, data, labels, text_embeddings, class_map, real), force=force, setting=name
        )
        for name, file, kind in (("csv", csv, EVALUATED), ("html", html, EVALUATION))
        if file is not None
    }
    if labels is not None and text_embeddings is not None:
        raise ConfigError("`text_embeddings` have names of their own, so `labels` have nothing to name; leave one out.")
    config = EvaluationConfig(batch=batch, workers=workers, skip_broken=skip_broken, resamples=resamples, seed=seed)
    lists, mapping = _read_beside(real, class_map)
    file = FileSettings(
        image_size=image_size, num_heads=num_heads, architecture=architecture, pickle=pickle, device=device
    )
    with open_network(
        model,
        file=file,
        threads=threads,
        note=note,
        preprocessing=preprocessing,
        float32=True,
        choice=EngineChoice(engine=engine, precision=precision, calibrate=calibrate, merge_tokens=merge_tokens),
        batch=batch,
    ) as (network, ranks):
        if text_embeddings is not None:
            network = with_texts(network, text_embeddings)
        if network.head_notes and isinstance(model, str | os.PathLike):
            raise InputError(
                f"{network.name} has a head of zeros, so every class gets the same score and there is nothing to "
                "measure; fine-tune it first."
            )
        dataset = open_data(data, network, split=split, root=root, skip_broken=skip_broken, seed=seed)
        choice = _choose(network, dataset, labels, lists, mapping, all_classes=all_classes)
        notes = (*network.notes, *network.head_notes, *dataset.notes, *choice.notes)
        if ranks.first:
            for sentence in notes:
                note(sentence)
        keep_freed_memory()
        measured = measure(network.engine, dataset, choice, config, ranks=ranks, real=lists, progress=progress)
        score = replace(measured, model=network.name, digest=network.digest, notes=notes, files=files)
        if ranks.first and "csv" in files:
            write_predictions(files["csv"], score.dataset, score.answers, real=score.real)
        if ranks.first and "html" in files:
            write_evaluation(evaluation_page(score, network), files["html"])
        return score


def _read_beside(
    real: RealLists | File | None, class_map: ClassMap | File | None
) -> tuple[RealLists | None, ClassMap | None]:
    """Read the labels of ReaL, or a map of classes."""
    if real is not None and class_map is not None:
        raise ConfigError("ReaL's labels are the model's own classes, so `real` takes no `class_map`; leave one out.")
    lists = read_real(Path(real)) if isinstance(real, str | os.PathLike) else real
    return lists, read_class_map(Path(class_map)) if isinstance(class_map, str | os.PathLike) else class_map


def _choose(
    network: Network,
    dataset: Dataset,
    labels: Sequence[str] | File | None,
    real: RealLists | None,
    class_map: ClassMap | None,
    *,
    all_classes: bool,
) -> Choice:
    """Decide which classes are scored."""
    outputs = network.engine.num_outputs
    if not outputs:
        texts = network.config is not None and network.config.text_width is not None
        advice = "fine-tune it first, or give `text_embeddings`" if texts else "fine-tune it first"
        raise InputError(f"{network.name} has no head, so it answers nothing; {advice}.")
    names = class_names(labels, network.info.labels, outputs)
    if real is None:
        return choose(dataset, names, outputs, class_map=class_map, all_classes=all_classes)
    check_outputs(outputs)
    return choose_with_real(dataset, names, outputs)
