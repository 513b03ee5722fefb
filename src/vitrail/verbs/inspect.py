"""Look into models: filters, positions, attention, layers, and how much each part matters."""

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, get_args

import torch

from vitrail.analysis.change import weight_changes
from vitrail.analysis.cka import FEWEST, cka
from vitrail.analysis.gathering import choose_attention
from vitrail.base.errors import ConfigError, ImageError, InputError
from vitrail.base.notes import Note, logged
from vitrail.base.numbers import check_whole
from vitrail.base.outputs import check_folder
from vitrail.base.progress import Progress, silent
from vitrail.checkpoint.labels import class_names
from vitrail.data.dataset import Dataset
from vitrail.evaluation.subset import Choice, choose
from vitrail.model.patches import Size
from vitrail.model.trace import Selection
from vitrail.runtime.engine import TorchEngine
from vitrail.verbs.inspecting import NO_CLASSES, NO_IMAGES, Inspecting, Shown, evenly
from vitrail.verbs.inspection import Comparison, Inspection, ModelFigures
from vitrail.verbs.inspection_files import FOLDER, PAGE, write_inspection
from vitrail.verbs.network import FileSettings, ModelLike, Network
from vitrail.verbs.networks import listed, open_data, open_networks

File = str | os.PathLike[str]
Measure = Literal["auto", "accuracy", "change", "none"]

MOST_MODELS = 6
WITHOUT_DATA = "no data is given, so panels that need images are left out; `data` adds them."
_WITH_IMAGES = ("distance", "entropy", "rollout", "norms", "cka", "rank", "dead", "importance", "pooling")
"""Panels that need images."""


def inspect(
    model: ModelLike | list[ModelLike] | tuple[ModelLike, ...],
    *,
    data: File | Dataset | None = None,
    split: str | None = None,
    root: File | None = None,
    images: int = 128,
    layers: Selection = "all",
    heads: Selection = "all",
    examples: int = 6,
    importance: Measure = "auto",
    importance_images: int = 64,
    labels: Sequence[str] | File | None = None,
    out: File | None = None,
    force: bool = False,
    image_size: int | Size | None = None,
    num_heads: int | None = None,
    architecture: str | None = None,
    pickle: bool = False,
    threads: int | None = None,
    device: str | torch.device = "auto",
    progress: Progress = silent,
    note: Note = logged,
) -> Inspection:
    """Show what a model has learned, and what training changed between two.

        >>> result = vitrail.inspect("model.safetensors", data="photos", images=8)
        >>> figures = result.models[0]
        >>> figures.attention.distance.shape, figures.layers.names, sorted(figures.pooling)
        ((2, 4), ('embedding', 'block 0', 'block 1'), ['class token', 'mean of patches', 'representation'])

    `model` is a file of any format, a model in memory or a `Classifier`, or up to six of them: then each is also
    compared with the first. Without `data` there are the panels that need no images: filters, positions, and
    changed weights. With it, `images` of them, evenly chosen, run through each model: attention distance and entropy of
    the blocks `layers` and of `heads`, rollout on some `examples`, lengths of tokens, CKA and rank of layers, dead
    units, and class token against mean pooling, which needs classes.

    `importance` sets each branch and head to zero on `importance_images` of the images: it is measured by `accuracy`
    where the data has the model's classes, else by the `change` of the outputs; `auto` takes what there is, `none`
    leaves it out. `out` is a folder that gets a page, each panel as PNG, its charts as SVG too, and its numbers as
    JSON.
    """
    models = listed(model)
    _check(models, images, examples, importance, importance_images)
    folder = None if out is None else check_folder(out, FOLDER, PAGE, inputs=(*models, data, labels), force=force)
    file = FileSettings(
        image_size=image_size, num_heads=num_heads, architecture=architecture, pickle=pickle, device=device
    )
    with open_networks(models, verb="inspect", file=file, threads=threads, note=note) as opened:
        networks = _named(opened)
        _check_attention(networks, layers, heads)
        dataset = None if data is None else open_data(data, networks[0], split=split, root=root)
        choices = [_choice(network, dataset, labels, importance) for network in networks]
        work = [
            Inspecting(
                engine=_torch_engine(network),
                name=network.name,
                attention=choose_attention(_torch_engine(network).model.config, layers, heads),
                examples=examples,
                importance_images=0 if importance == "none" else importance_images,
                choice=choice,
                progress=progress,
            )
            for network, choice in zip(networks, choices, strict=True)
        ]
        notes = tuple(sentence for network in networks for sentence in network.notes)
        notes += () if dataset is None else dataset.notes
        notes += (WITHOUT_DATA,) if data is None else ()
        for sentence in notes:
            note(sentence)
        result = replace(_inspect(work, dataset, images, note), notes=notes)
        return result if folder is None else replace(result, files=write_inspection(result, folder))


def _check(models: list[Any], images: int, examples: int, importance: Measure, importance_images: int) -> None:
    if len(models) > MOST_MODELS:
        raise InputError(f"{len(models)} models are given, but a page has room for {MOST_MODELS}; leave some out.")
    check_whole("images", images)
    check_whole("examples", examples, least=0, most=100)
    check_whole("importance_images", importance_images)
    if importance not in get_args(Measure):
        raise ConfigError(f"importance is {importance!r}, but must be one of {', '.join(get_args(Measure))}.")


def _check_attention(networks: list[Network], layers: Selection, heads: Selection) -> None:
    """Refuse a choice of blocks or heads where no model has any."""
    if (layers, heads) != ("all", "all") and not any(
        _torch_engine(network).model.config.attention_shape[0] for network in networks
    ):
        raise ConfigError("`layers` and `heads` choose attention, but no model that is given has any; leave them out.")


def _named(networks: list[Network]) -> list[Network]:
    """Give models in memory, and files of one name, names that differ."""
    names = [network.name for network in networks]
    return [
        replace(network, name=f"{network.name} {number}") if names.count(network.name) > 1 else network
        for number, network in enumerate(networks, 1)
    ]


def _torch_engine(network: Network) -> TorchEngine:
    if not isinstance(network.engine, TorchEngine):
        raise InputError(
            f"{network.name} runs in an engine that shows nothing of its inside; give the model's own file."
        )
    return network.engine


def _choice(
    network: Network, dataset: Dataset | None, labels: Sequence[str] | File | None, importance: Measure
) -> Choice | None:
    """Match the classes of the data to those of a model; None where accuracy is not wanted or not known."""
    if dataset is None and importance == "accuracy":
        raise InputError("importance='accuracy' needs images with classes, but no data is given; give it with `data`.")
    if dataset is None or importance not in ("auto", "accuracy"):
        return None
    outputs = network.engine.num_outputs
    if not outputs:
        if importance == "accuracy":
            raise InputError(f"{network.name} has no classes, so it has no accuracy; choose importance='change'.")
        return None
    try:
        return choose(dataset, class_names(labels, network.info.labels, outputs), outputs, mappable=False)
    except InputError:
        if importance == "accuracy" or labels is not None:
            raise
        return None


def _inspect(work: list[Inspecting], dataset: Dataset | None, images: int, note: Note) -> Inspection:
    """Look into every model, and compare each with the first."""
    models = [each.weights() for each in work]
    features: list[list[torch.Tensor] | None] = [None] * len(work)
    shown: Shown | None = None
    failures: list[tuple[str, str]] = []
    if dataset is not None:
        shown, failures = _read(dataset, images, note)
        for number, each in enumerate(work):
            models[number], features[number] = each.images(models[number], shown)
    models = [_with_absences(model, shown) for model in models]
    return Inspection(
        models=tuple(models),
        comparisons=tuple(_compare(work, features, number) for number in range(1, len(work))),
        data=None if dataset is None else dataset.where,
        images=0 if shown is None else len(shown.pixels),
        failures=tuple(failures),
    )


def _read(dataset: Dataset, images: int, note: Note) -> tuple[Shown, list[tuple[str, str]]]:
    """Read images at even distances; one that cannot be read is noted and left out."""
    if not len(dataset):
        raise InputError(f"{dataset.where} has no images.")
    places = evenly(len(dataset), images)
    pixels, read, failures = [], [], []
    for index in places.tolist():
        try:
            pixels.append(dataset.image(index))
            read.append(index)
        except ImageError as error:
            failures.append((dataset.name(index), str(error)))
            note(str(error))
    if not pixels:
        raise InputError(f"none of the {len(places)} images of {dataset.where} could be read: {failures[0][1]}")
    names = [dataset.name(index) for index in read]
    return Shown(pixels=pixels, names=names, targets=dataset.targets[read]), failures


def _compare(work: list[Inspecting], features: list[list[torch.Tensor] | None], number: int) -> Comparison:
    ours, theirs = features[0], features[number]
    alike = None
    if ours is not None and theirs is not None and len(ours[0]) >= FEWEST:
        alike = cka(ours, theirs).numpy()
    changes, unmatched = weight_changes(work[0].model, work[number].model)
    return Comparison(
        first=work[0].name,
        second=work[number].name,
        alike=alike,
        changes=tuple(changes),
        unmatched=tuple(unmatched),
    )


def _with_absences(model: ModelFigures, shown: Shown | None) -> ModelFigures:
    """Add why a panel has nothing about a model."""
    absences = dict(model.absences)
    if shown is None:
        absences = dict.fromkeys(_WITH_IMAGES, NO_IMAGES) | absences
    elif not model.pooling:
        absences["pooling"] = NO_CLASSES
    return replace(model, absences=absences)
