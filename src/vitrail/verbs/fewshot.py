"""Measure how good a model's frozen features are with a few labelled images of each class."""

import os
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Literal, get_args

import torch

from vitrail.base.errors import ConfigError, InputError
from vitrail.base.notes import Note, logged, unheard
from vitrail.base.numbers import MOST_BATCH, MOST_WORKERS, check_whole
from vitrail.base.outputs import check_output
from vitrail.base.progress import Progress, silent
from vitrail.data.budget import Budget
from vitrail.data.catalog import open_splits
from vitrail.data.dataset import Dataset
from vitrail.evaluation.defaults import L2, NEIGHBOURS, C, MethodName
from vitrail.evaluation.extractor import Extractor
from vitrail.evaluation.feature_files import default_folder
from vitrail.evaluation.features import feature_preprocessing
from vitrail.evaluation.fewshot import Method, Shots, check_shots, extract_drawn, extract_labelled, measure
from vitrail.evaluation.fewshot_result import FewShot
from vitrail.evaluation.neighbours import neighbours as nearest
from vitrail.evaluation.probe import probe
from vitrail.evaluation.ridge import ridge
from vitrail.model.patches import Size
from vitrail.published.find import model_name
from vitrail.report.shots import SHOTS, ShotsLine, write_shots
from vitrail.runtime.choice import EngineChoice, EngineName, Precision
from vitrail.verbs.computing import check_threads
from vitrail.verbs.network import FileSettings, ModelLike, open_network

File = str | os.PathLike[str]
METHODS: tuple[MethodName, ...] = get_args(MethodName)


def fewshot(
    model: ModelLike,
    data: File | Mapping[str, Dataset],
    *,
    shots: Sequence[int | Literal["all"]] = (1, 5, 10, 25),
    methods: Sequence[MethodName] = ("ridge",),
    seeds: int = 3,
    l2: Sequence[float] = (L2,),
    neighbours: int = NEIGHBOURS,
    probe_c: float = C,
    preprocessing: Literal["paper", "model"] = "paper",
    image_size: int | Size | None = None,
    num_heads: int | None = None,
    architecture: str | None = None,
    cache: File | bool = True,
    plot: File | None = None,
    force: bool = False,
    val_fraction: float = 0.1,
    skip_broken: str = "0",
    root: File | None = None,
    batch: int = 64,
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
) -> FewShot:
    """Fit classifiers on the features of a few images of each class, and measure them on the test split.

        >>> model = vitrail.create("Ti/14", num_classes=0, image_size=28, channels=1, depth=1, seed=0)
        >>> result = vitrail.fewshot(model, "sample", shots=[1, 5], seeds=2, cache=False)
        >>> [(score.shots, score.images, len(score.accuracies)) for score in result.scores]
        [(1, 10, 2), (5, 50, 2)]

    `model` is a file of any format, a model in memory, a `Classifier`, or any engine; its last layer is not used.
    `data` is whatever `vitrail.data.open_splits` opens, or what it returned: shots are drawn from `train`, and accuracy
    is measured on `test`, or on `val` where there is no test. `shots` are images of each class, or `"all"`. The
    `methods` are the paper's least squares (`ridge`, with one result for each strength `l2`), `neighbours` that vote,
    and a linear `probe` with `probe_c`, the C of scikit-learn.

    Features are kept below `cache`: a folder, True for the usual one, False for none. `plot` draws accuracy against
    shots into an `.svg` or `.png`, and replaces a file of another kind only with `force`. `image_size`, `num_heads`,
    `pickle` and `device` are for files; `engine` and `precision` choose what computes, with images of
    `calibrate` for int8; `merge_tokens` lets each block merge that many tokens. Under torchrun ranks share the
    images; the first one fits, and the others return a result without scores.
    """
    check_whole("batch", batch, most=MOST_BATCH)
    check_whole("workers", workers, least=0, most=MOST_WORKERS)
    check_threads(threads)
    counts, fitted = _shots(shots), _methods(methods, l2=l2, neighbours=neighbours, probe_c=probe_c)
    if plot is not None:
        check_output(plot, SHOTS, inputs=(model, data), force=force, setting="plot")
    file = FileSettings(
        image_size=image_size, num_heads=num_heads, architecture=architecture, pickle=pickle, device=device
    )
    train, test = _splits(data, val_fraction=val_fraction, skip_broken=skip_broken, root=root)
    check_shots(train, test, counts, seeds)
    choice = EngineChoice(engine=engine, precision=precision, calibrate=calibrate, merge_tokens=merge_tokens)
    with open_network(model, file=file, threads=threads, note=note, choice=choice, batch=batch) as (network, ranks):
        first = note if ranks.first else unheard
        extractor = Extractor(
            engine=network.engine,
            preprocessing=feature_preprocessing(network.engine.preprocessing, preprocessing),
            ranks=ranks,
            batch=batch,
            workers=workers,
            cache=default_folder() if cache is True else None if cache is False else Path(cache),
            progress=progress if ranks.first else silent,
            note=first,
        )
        notes = tuple(dict.fromkeys((*network.notes, *train.notes, *test.notes)))
        for sentence in notes:
            first(sentence)
        allowed = Budget.parse(skip_broken)
        train_budget, test_budget = (allowed.left(len(split), split.skipped) for split in (train, test))
        draws, shot_features = extract_drawn(train, counts, seeds, extractor, skip_broken=train_budget)
        test_features = extract_labelled(test, extractor, skip_broken=test_budget)
        result = FewShot(
            model=network.name,
            dataset=test,
            images=len(test_features.rows),
            preprocessing=extractor.preprocessing,
            # fitting is the work of one rank
            scores=tuple(measure(shot_features, draws, test_features, len(train.labels), fitted, progress=progress))
            if ranks.first
            else (),
            notes=notes,
        )
    if plot is not None and result.scores:
        name = Path(result.dataset.where).name or result.dataset.where
        title = f"Few-shot accuracy of {model_name(result.model)} on {name}"
        write_shots(_lines(result, len(train.labels)), Path(plot), title=title)
    return result


def _shots(shots: Sequence[int | Literal["all"]]) -> list[Shots]:
    """Return the numbers of images of each class, each once; None is all."""
    if not shots:
        raise ConfigError('shots is empty, but takes numbers of images such as 1, 5, 10, 25, or "all".')
    for number in shots:
        if number != "all":
            check_whole("shots", number)
    return list(dict.fromkeys(None if number == "all" else number for number in shots))


def _methods(
    methods: Sequence[MethodName], *, l2: Sequence[float], neighbours: int, probe_c: float
) -> dict[str, Method]:
    if not l2 or not all(0 < strength < float("inf") for strength in l2):
        raise ConfigError(f"`l2` is {', '.join(map(str, l2)) or 'empty'}, but must be above 0.")
    if not 0 < probe_c < float("inf"):
        raise ConfigError(f"`probe_c` is {probe_c}, but must be above 0.")
    check_whole("neighbours", neighbours)
    if not methods or set(methods) - set(METHODS):
        raise ConfigError(f"`methods` is {', '.join(methods) or 'empty'}, but takes {', '.join(METHODS)}.")
    makers: dict[str, Method] = {
        "ridge": partial(ridge, l2=tuple(dict.fromkeys(l2))),
        "neighbours": partial(nearest, most=neighbours),
        "probe": partial(probe, c=probe_c),
    }
    return {name: makers[name] for name in dict.fromkeys(methods)}


def _splits(
    data: File | Mapping[str, Dataset], *, val_fraction: float, skip_broken: str, root: File | None
) -> tuple[Dataset, Dataset]:
    if isinstance(data, Mapping):
        where, splits = "the data", dict(data)
    else:
        where = os.fspath(data)
        splits = open_splits(where, val_fraction=val_fraction, skip_broken=skip_broken, root=root)
    train, test = splits.get("train"), splits.get("test") or splits.get("val")
    if train is None or test is None:
        raise InputError(
            f"{where} has the splits {', '.join(splits)}, but train is needed to draw from, and test or val to measure "
            "on."
        )
    return train, test


def _lines(result: FewShot, classes: int) -> list[ShotsLine]:
    """Gather the scores of each method; all images count as their mean number in a class."""
    return [
        ShotsLine(
            name=method,
            shots=tuple(score.images / classes for score in own),
            accuracies=tuple(score.mean for score in own),
            spreads=tuple(score.spread or 0.0 for score in own),
        )
        for method in result.methods
        if (own := sorted((score for score in result.scores if score.method == method), key=lambda score: score.images))
    ]
