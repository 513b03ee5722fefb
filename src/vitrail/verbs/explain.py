"""Explain answers: show where a model looked on the user's own images, and measure whether that can be trusted."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from vitrail.analysis import faithfulness
from vitrail.analysis.cells import mean_colour
from vitrail.analysis.methods import (
    Method,
    MethodSettings,
    applicable,
    best_method,
    cells_of,
    check_method,
    heat_maps,
    needs_class,
    probabilities,
)
from vitrail.base.errors import ConfigError, ImageError, InputError, did_you_mean
from vitrail.base.notes import Note, logged
from vitrail.base.numbers import MOST_SEED, check_whole
from vitrail.base.progress import Progress, silent
from vitrail.base.shapes import NewPixels
from vitrail.checkpoint.store import check_labels
from vitrail.data.labels import read_labels
from vitrail.data.pictures import Picture, pixels_of
from vitrail.data.transforms import preprocess
from vitrail.model.patches import Size
from vitrail.report.overlay import picture_of
from vitrail.runtime.engine import Engine
from vitrail.verbs.explanation import Explanation, Explanations, HeatMap, Trust
from vitrail.verbs.explanation_files import explanation_folder, write_explanations
from vitrail.verbs.images import open_images
from vitrail.verbs.network import FileSettings, ModelLike, Network, open_network

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
    steps: int = 32,
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
    folder = None if out is None else explanation_folder(out, inputs=(model, labels), force=force)
    file = FileSettings(
        image_size=image_size, num_heads=num_heads, architecture=architecture, pickle=pickle, device=device
    )
    with open_network(model, file=file, threads=threads, note=note, float32=True) as (network, ranks):
        if ranks.world > 1:
            raise ConfigError("explain computes on one rank; start it without torchrun.")
        names = _class_names(network, labels)
        settings = MethodSettings(layer=layer, head=head, steps=steps)
        methods, reason = _methods(network.engine, method, settings, compare=compare)
        if "attention" not in methods and (layer, head) != (-1, None):
            raise ConfigError("`layer` and `head` are of attention alone; give the `method` attention beside them.")
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


@dataclass(frozen=True, kw_only=True, eq=False)
class Explaining:
    """Everything that is the same for all images."""

    engine: Engine
    names: tuple[str, ...]
    methods: tuple[Method, ...]
    settings: MethodSettings
    number: int | None
    """The class that is explained; None explains the most probable ones."""
    top: int
    points: int
    seed: int

    def explain(self, picture: Picture, name: str, place: int) -> Explanation:
        """Explain one image."""
        preprocessing = self.engine.preprocessing
        whole = pixels_of(picture, preprocessing.channels)
        pixels = preprocess(whole, preprocessing)
        scores = probabilities(self.engine, pixels[None])[0].cpu()
        if not scores.isfinite().all():
            raise ImageError("the model's scores for it are not finite; `vitrail verify` checks its weights.")
        order = scores.argsort(descending=True, stable=True).tolist()
        classes = [self.number] if self.number is not None else order[: self.top]
        random = self._random(pixels, classes[0], place)
        maps = [heat for method in self.methods for heat in self._maps(method, pixels, scores, classes, random, place)]
        return Explanation(
            name=name,
            image_size=(whole.shape[1], whole.shape[2]),
            picture=picture_of(whole),
            preprocessing=preprocessing,
            top=tuple((self.names[number], float(scores[number])) for number in order[: max(self.top, 3)]),
            maps=tuple(maps),
        )

    def _maps(
        self,
        method: Method,
        pixels: NewPixels,
        scores: torch.Tensor,
        classes: Sequence[int],
        random: faithfulness.Curves | None,
        place: int,
    ) -> list[HeatMap]:
        """Return a map of each class, the first one measured; a method without classes has one map."""
        numbers = torch.tensor(classes if needs_class(method) else classes[:1])
        batch = heat_maps(method, self.engine, pixels.expand(len(numbers), -1, -1, -1), numbers, self.settings)
        cells = cells_of(self.engine)
        values = cells.means(batch.maps)
        maps = []
        for at, number in enumerate(numbers.tolist()):
            trust = None
            if random is not None and at == 0:
                order = faithfulness.order_of(values[at], self.seed, "ties", place)
                trust = _trust(self._curves(pixels, number, order), random)
            total = float(batch.maps[at].sum())
            error = None if batch.errors is None else abs(float(batch.errors[at])) / max(abs(total), 1e-12)
            maps.append(
                HeatMap(
                    method=method,
                    label=self.names[number],
                    probability=float(scores[number]),
                    values=batch.maps[at].double().numpy(),
                    cells=values[at].double().numpy().reshape(cells.grid),
                    trust=trust,
                    error=error,
                )
            )
        return maps

    def _random(self, pixels: NewPixels, number: int, place: int) -> faithfulness.Curves | None:
        """Measure random maps, and return their mean curves."""
        if self.points < 2:
            return None
        cells = len(cells_of(self.engine))
        orders = [
            faithfulness.random_order(cells, self.seed, "random", place, draw)
            for draw in range(faithfulness.RANDOM_MAPS)
        ]
        curves = [self._curves(pixels, number, order) for order in orders]
        return faithfulness.Curves(
            shares=curves[0].shares,
            deletion=np.mean([curve.deletion for curve in curves], axis=0),
            insertion=np.mean([curve.insertion for curve in curves], axis=0),
        )

    def _curves(self, pixels: NewPixels, number: int, order: faithfulness.Order) -> faithfulness.Curves:
        return faithfulness.measure(
            lambda batch: probabilities(self.engine, batch),
            pixels,
            number,
            order,
            cells=cells_of(self.engine),
            colour=mean_colour(self.engine.preprocessing),
            points=self.points,
        )


def _methods(
    engine: Engine, method: Method | Literal["auto"], settings: MethodSettings, *, compare: bool
) -> tuple[tuple[Method, ...], tuple[str, ...]]:
    """Return the methods to use, and a sentence where they were chosen for this kind of model."""
    if compare:
        if method != "auto":
            raise ConfigError(f"compare uses every method, but method is {method!r}; leave one of them out.")
        return applicable(engine), ()
    if method == "auto":
        chosen, reason = best_method(engine)
        return (chosen,), (reason,)
    check_method(method, engine, settings)
    return (method,), ()


def _class_names(network: Network, labels: Sequence[str] | File | None) -> tuple[str, ...]:
    outputs = network.engine.num_outputs
    if not outputs:
        raise InputError(f"{network.name} has no classes, only a representation; fine-tune it first.")
    names = read_labels(Path(labels), outputs) if isinstance(labels, str | os.PathLike) else labels
    names = network.info.labels if names is None else tuple(names)
    check_labels(names, outputs)
    return tuple(map(str, range(outputs))) if names is None else names


def _class_number(label: str, names: tuple[str, ...]) -> int:
    if label not in names:
        listing = ", ".join(names[:5]) + (f" and {len(names) - 5:,} more" if len(names) > 5 else "")
        raise ConfigError(f"the model has no class {label!r}, only {listing}.{did_you_mean(label, names)}")
    return names.index(label)


def _trust(curves: faithfulness.Curves, random: faithfulness.Curves) -> Trust:
    return Trust(
        shares=curves.shares,
        deletion=curves.deletion,
        insertion=curves.insertion,
        random_deletion=random.deletion,
        random_insertion=random.insertion,
    )
