"""The figures of one model: those of its weights, and those of images that run through it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from vitrail.analysis.cka import FEWEST, cka
from vitrail.analysis.distance import patch_distances
from vitrail.analysis.filters import principal_filters
from vitrail.analysis.gathering import AttentionChoice, Gathered, gather, images_at_once
from vitrail.analysis.importance import feature_change, measure_branches, probability_change
from vitrail.analysis.norms import find_outliers
from vitrail.analysis.placing import place
from vitrail.analysis.rank import effective_rank
from vitrail.analysis.rollout import rollout_heat
from vitrail.analysis.similarity import near_and_far, offset_similarity, position_similarity, shown_patches
from vitrail.analysis.units import dead_units
from vitrail.base.errors import InputError
from vitrail.base.progress import Progress, silent
from vitrail.base.shapes import PixelBatch, Pixels
from vitrail.data.pixels.decode import to_channels
from vitrail.data.transforms import preprocess
from vitrail.evaluation.ridge import ridge
from vitrail.evaluation.subset import Choice, class_scores
from vitrail.model.contract import Model
from vitrail.report.overlay import Picture, overlay, picture_of
from vitrail.runtime.engine import TorchEngine
from vitrail.verbs.inspection import Attention, Importance, Layers, ModelFigures

NO_IMAGES = "this needs images, and no data was given."
NO_CLASSES = "this needs at least two classes, and two images of each."
OVERLAY_SIDE = 224
"""Pixels of the longer side of an example."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Shown:
    """The images that are looked at, whatever the model."""

    pixels: Sequence[Pixels]
    names: Sequence[str]
    targets: np.ndarray
    """The class of each image in the data; -1 without one."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Inspecting:
    """One model, and how it is looked at."""

    engine: TorchEngine
    name: str
    attention: AttentionChoice
    examples: int = 0
    importance_images: int = 0
    choice: Choice | None = None
    """How classes of the data are classes of the model; None leaves accuracy out."""
    progress: Progress = silent

    @property
    def model(self) -> Model:
        """The network."""
        return self.engine.model

    def weights(self) -> ModelFigures:
        """Return the figures that need no images."""
        model, config = self.model, self.model.config
        if not all(parameter.isfinite().all() for parameter in model.parameters()):
            raise InputError(f"{self.name} has weights that are not finite; train it again, or get its file again.")
        kernels, absences = model.filters(), {}
        if kernels is None:
            absences["filters"] = f"a {config.noun} shows no filters."
        grids, shown, contrasts = {}, (0, 0), {}
        positions = model.positions()
        if config.grid is not None:
            patches, shown = shown_patches(config.grid)
            grids = {name: position_similarity(table, config.grid, patches) for name, table in positions.tables.items()}
            for name, table in positions.offsets.items():
                grids[f"{name}, offsets"] = offset_similarity(table, config.grid, patches)
            contrasts = {name: near_and_far(cosines, patches) for name, cosines in grids.items()}
        if not grids:
            absences["positions"] = f"a {config.noun} without positions has none to compare."
        if not config.attention_shape[0]:
            absences |= dict.fromkeys(("distance", "entropy", "rollout"), f"a {config.noun} has no attention.")
        return ModelFigures(
            name=self.name,
            layer_names=tuple(layer.name for layer in model.layers()),
            filters=None if kernels is None else principal_filters(kernels.cpu()),
            positions={name: cosines.numpy() for name, cosines in grids.items()},
            shown=shown,
            contrasts=contrasts,
            absences=absences,
        )

    def images(self, model: ModelFigures, shown: Shown) -> tuple[ModelFigures, list[Tensor]]:
        """Add the figures that need images, and return the mean features of each layer too."""
        pixels = torch.stack([self._preprocessed(image) for image in shown.pixels])
        gathered = self._gather(pixels)
        means = [torch.cat(parts) for parts in zip(*gathered.means, strict=True)]
        figures = replace(
            model,
            attention=self._attention(gathered),
            layers=_layers(gathered, means),
            representation_rank=effective_rank(torch.cat(gathered.pooled["representation"])),
            dead={name: _dead(parts) for name, parts in gathered.units.items()},
            pooling=_pooling(gathered, shown),
            importance=self._importance(pixels, shown) if self.importance_images else None,
            examples=self._examples(shown) if self.attention.blocks else (),
        )
        return figures, means

    def _preprocessed(self, image: Pixels) -> Tensor:
        how = self.engine.preprocessing
        return preprocess(to_channels(image, how.channels), how)

    def _gather(self, pixels: PixelBatch) -> Gathered:
        layers = self.model.layers()
        size = images_at_once(self.model.config, len(layers), self.model.config.feature_width)
        parts = pixels.split(size)
        batches = self.progress(parts, total=len(parts), title=f"looking into {self.name} ({size} images a step)")
        gathered = gather(self.model, (self.engine.inputs(part) for part in batches), self.attention)
        if not all(values.isfinite().all() for values in gathered.pooled["representation"]):
            raise InputError(f"{self.name} gives numbers that are not finite; `vitrail verify` checks its weights.")
        return gathered

    def _attention(self, gathered: Gathered) -> Attention | None:
        if not gathered.attention:
            return None
        distance, entropy = torch.cat(gathered.attention, dim=2).double().mean(dim=2).numpy()
        return Attention(
            blocks=self.attention.blocks,
            heads=self.attention.heads,
            distance=distance,
            entropy=entropy,
            uniform=float(patch_distances(self.model.config.grid, self.model.config.cell_size).mean()),
            tokens=self.model.config.sequence,
        )

    def _importance(self, pixels: PixelBatch, shown: Shown) -> Importance:
        """Leave out each branch on some of the images, evenly chosen; for accuracy, of those with a class."""
        choice, places, accuracy = self.choice, np.arange(len(pixels)), None
        targets = None if choice is None else choice.targets(shown.targets)
        if targets is not None and (targets >= 0).any():
            places = np.flatnonzero(targets >= 0)
        some = places[evenly(len(places), self.importance_images)]
        parts = pixels[torch.from_numpy(some)].split(32)
        answers = self.engine.num_outputs > 0

        def outputs() -> Tensor:
            return torch.cat([self.engine.logits(part).float().cpu() for part in parts])

        def change(before: Tensor, after: Tensor) -> float:
            return probability_change(before.softmax(1), after.softmax(1)) if answers else feature_change(before, after)

        if choice is not None and targets is not None and (targets[some] >= 0).all():
            truth = targets[some]

            def accuracy(logits: Tensor) -> float:
                return float((class_scores(logits, choice).argmax(1).numpy() == truth).mean())

        figures = measure_branches(self.model, outputs, change=change, accuracy=accuracy, progress=self.progress)
        return Importance(
            measure="probabilities" if answers else "features",
            figures=tuple(figures),
            accuracy=None if accuracy is None else accuracy(outputs()),
            images=len(some),
        )

    def _examples(self, shown: Shown) -> tuple[tuple[str, Picture], ...]:
        """Lay rollout over some images, evenly chosen (Fig. 14)."""
        places = evenly(len(shown.pixels), self.examples)
        return tuple((shown.names[at], self._overlay(shown.pixels[at])) for at in places.tolist())

    def _overlay(self, image: Pixels) -> Picture:
        heat = rollout_heat(self.model, self.engine.inputs(self._preprocessed(image)[None]))[0].double().cpu().numpy()
        picture = picture_of(image, OVERLAY_SIDE)
        size, side = (image.shape[1], image.shape[2]), (picture.shape[0], picture.shape[1])
        coloured = overlay(picture, place(heat, self.engine.preprocessing, size, side), signed=False)
        return np.concatenate([picture, coloured], axis=1)


def evenly(count: int, most: int) -> Int[np.ndarray, "some"]:
    """Choose up to `most` places of `count`, at even distances."""
    return np.unique(np.linspace(0, count - 1, min(most, count)).round().astype(int))


def _layers(gathered: Gathered, means: list[Tensor]) -> Layers:
    lengths = [torch.cat(parts).flatten().double().numpy() for parts in zip(*gathered.lengths, strict=True)]
    places = [torch.cat(parts) for parts in zip(*gathered.places, strict=True)]
    enough = len(means[0]) >= FEWEST
    return Layers(
        names=gathered.layers,
        lengths=np.array([(*np.quantile(length, (0.5, 0.99)), length.max()) for length in lengths]),
        ranks=tuple(effective_rank(features) for features in places),
        alike=cka(means, means).numpy() if enough else np.full((len(means), len(means)), np.nan),
        outliers=find_outliers(lengths[-1]),
    )


def _dead(parts: list[Tensor]) -> tuple[int, int]:
    peaks, squares = torch.stack(parts).unbind(dim=1)
    return dead_units(peaks.amax(dim=0), squares.mean(dim=0)), peaks.shape[1]


def _pooling(gathered: Gathered, shown: Shown) -> dict[str, float]:
    """Fit least squares on one half of each class and answer for the other, and the other way round."""
    known = np.flatnonzero(shown.targets >= 0)
    classes, targets = np.unique(shown.targets[known], return_inverse=True)
    if len(classes) < 2 or np.bincount(targets).min() < 2:
        return {}
    order = np.argsort(targets, kind="stable")
    half = np.empty(len(targets), dtype=int)
    half[order] = np.arange(len(targets)) - np.searchsorted(targets[order], targets[order])
    half %= 2
    accuracies = {}
    for name, parts in gathered.pooled.items():
        features = torch.cat(parts)[torch.from_numpy(known)]
        right = 0
        for fold in (0, 1):
            train, test = half == fold, half != fold
            (answers,) = ridge(features[train], targets[train], len(classes), features[test]).values()
            right += int((answers == targets[test]).sum())
        accuracies[name] = right / len(targets)
    return accuracies
