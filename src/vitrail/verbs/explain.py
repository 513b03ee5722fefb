"""Explain answers: show where a model looked on the user's own images, and measure whether that can be trusted."""

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal

import torch

from vitrail.analysis import faithfulness
from vitrail.analysis.gradients import STEPS
from vitrail.analysis.methods import (
    Method,
    MethodSettings,
    applicable,
    best_method,
    check_method,
    check_settings,
)
from vitrail.base.errors import ConfigError, ImageError, InputError, did_you_mean
from vitrail.base.notes import Note, logged
from vitrail.base.numbers import MOST_SEED, check_whole
from vitrail.base.outputs import check_folder
from vitrail.base.progress import Progress, silent
from vitrail.checkpoint.labels import class_names
from vitrail.data.pictures import Picture
from vitrail.model.patches import Size
from vitrail.runtime.engine import Engine
from vitrail.verbs.explaining import Explaining
from vitrail.verbs.explanation_files import FOLDER, PAGE, write_explanations
from vitrail.verbs.explanations import Explanations
from vitrail.verbs.images import open_images
from vitrail.verbs.network import FileSettings, ModelLike, Network
from vitrail.verbs.networks import open_networks

File = str | os.PathLike[str]


def explain(
    model: ModelLike,
    images: Picture | list[Any] | tuple[Any, ...],
    *,
    method: Method | Literal["auto"] = "auto",
    label: str | None = None,
    top: int = 3,
    layer: int = -1,
    head: int | None = None,
    steps: int = STEPS,
    compare: bool = False,
    points: int = faithfulness.POINTS,
    seed: int = 0,
    out: File | None = None,
    force: bool = False,
    labels: Sequence[str] | File | None = None,
    image_size: int | Size | None = None,
    num_heads: int | None = None,
    architecture: str | None = None,
    pickle: bool = False,
    threads: int | None = None,
    device: str | torch.device = "auto",
    stdin: Callable[[], bytes] = bytes,
    progress: Progress = silent,
    note: Note = logged,
) -> Explanations:
    """Show which parts of images speak for the answers of a model, or for one class.

        >>> model = vitrail.create("Ti/16", num_classes=2, image_size=64, seed=0)
        >>> photo = numpy.zeros((80, 60, 3), numpy.uint8)
        >>> answer = vitrail.explain(model, photo, labels=["ant", "bee"], method="rollout")
        >>> answer[0].maps[0].values.shape, answer[0].overlay().shape
        ((4, 4), (160, 120, 3))

    `model` is a file of any format, a model in memory, a `Classifier`, or any engine; images are given as for
    `vitrail.predict`. `method` is `attention` (of one `layer`, and one `head` or the mean over heads), `rollout`,
    `gradient-attention`, `integrated-gradients` (with `steps` points), `occlusion` or `grad-cam`; `auto` chooses by the
    kind of model, and notes it. The classes explained are the `top` most probable ones, or the one named `label`.

    The first map of each image is measured: its deletion and insertion curves at `points` places, against random maps
    that `seed` decides; fewer than 2 `points` leave that out. `compare` measures every method that fits the model.
    `out` is a folder that gets a picture and the maps of each image, a page and a JSON file; a folder of another kind
    is written into only with `force`.
    """
    check_whole("top", top)
    check_whole("points", points, least=0, most=1000)
    check_whole("seed", seed, least=-MOST_SEED, most=MOST_SEED)
    read = images if isinstance(images, list | tuple) else [images]
    folder = None if out is None else check_folder(out, FOLDER, PAGE, inputs=(model, labels, *read), force=force)
    file = FileSettings(
        image_size=image_size, num_heads=num_heads, architecture=architecture, pickle=pickle, device=device
    )
    with open_networks([model], verb="explain", file=file, threads=threads, note=note) as (network,):
        names = _class_names(network, labels)
        settings = MethodSettings(layer=layer, head=head, steps=steps)
        methods, reason = _methods(network.engine, method, compare=compare)
        check_settings(settings, methods, network.engine)
        notes = (*network.notes, *network.head_notes, *reason)
        for sentence in notes:
            note(sentence)
        work = Explaining(
            engine=network.engine,
            names=names,
            methods=methods,
            settings=settings,
            number=None if label is None else _class_number(label, names),
            top=1 if compare else top,
            points=points,
            seed=seed,
        )
        pictures = open_images(images, note, stdin)
        explanations, failures = [], []
        for place in progress(range(len(pictures)), total=len(pictures), title="explaining"):
            try:
                explanations.append(work.explain(pictures.read(place), pictures.names[place], place))
            except ImageError as error:
                failures.append((pictures.names[place], str(error)))
                note(f"{pictures.names[place]}: {error}")
        result = Explanations(model=network.name, images=tuple(explanations), failures=tuple(failures), notes=notes)
        return result if folder is None else replace(result, files=write_explanations(result, folder))


def _methods(
    engine: Engine, method: Method | Literal["auto"], *, compare: bool
) -> tuple[tuple[Method, ...], tuple[str, ...]]:
    """Return the methods to use, and a sentence where they were chosen for this kind of model."""
    if compare:
        if method != "auto":
            raise ConfigError(f"`compare` uses every method, but `method` is {method!r}; leave one of them out.")
        return applicable(engine), ()
    if method == "auto":
        chosen, reason = best_method(engine)
        return (chosen,), (reason,)
    check_method(method, engine)
    return (method,), ()


def _class_names(network: Network, labels: Sequence[str] | File | None) -> tuple[str, ...]:
    outputs = network.engine.num_outputs
    if not outputs:
        raise InputError(f"{network.name} has no classes, only a representation; fine-tune it first.")
    names = class_names(labels, network.info.labels, outputs)
    return tuple(map(str, range(outputs))) if names is None else names


def _class_number(label: str, names: tuple[str, ...]) -> int:
    if not isinstance(label, str):
        raise ConfigError(f"label is {label!r}, but must be the name of a class, such as {names[0]!r}.")
    if label not in names:
        listing = ", ".join(names[:5]) + (f" and {len(names) - 5:,} more" if len(names) > 5 else "")
        raise ConfigError(f"the model has no class {label!r}, only {listing}.{did_you_mean(label, names)}")
    return names.index(label)
