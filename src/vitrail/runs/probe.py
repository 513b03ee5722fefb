"""What a model knows while it learns without labels: few-shot accuracy, copies found again, spread, neighbours.

Every rank measures all of the few images by itself, so that shards are gathered by all of them at the same time.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float

from vitrail.base.errors import InputError
from vitrail.base.shapes import PixelBatch
from vitrail.data.budget import Budget
from vitrail.data.dataset import Dataset, Rows
from vitrail.data.loader import evaluation_batches
from vitrail.data.preprocessing import Preprocessing
from vitrail.data.subsets import few_shot
from vitrail.evaluation.features import Matrix
from vitrail.evaluation.ridge import ridge
from vitrail.evaluation.spread import COLLAPSED, copies_found, nearest, spread
from vitrail.model.contract import Model
from vitrail.report.learned import Row, attention_section, neighbours_section
from vitrail.report.markup import percent
from vitrail.report.section import Figure, Section, sentence
from vitrail.runs.data import RunData
from vitrail.runs.evaluator import RunEvaluator
from vitrail.runtime.engine import TorchEngine
from vitrail.selfsup.objective import Probe

EVALUATED = 1000
"""Images that are measured, spread over the split."""
SHOTS = 10
"""Labelled images of each class that least squares are fitted on, or fewer where a class has fewer."""
MOST_SHOTS = 2000
"""Labelled images in all."""
SHOWN, NEAREST, LOOKED = 6, 5, 4
"""Images whose neighbours are shown, these neighbours, and images whose attention is shown."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Probed:
    """What was measured of the features at one step."""

    values: dict[str, float]
    """The figures by name."""
    neighbours: list[list[int]]
    """Images of the probe, each with the nearest others behind it."""
    attention: Float[np.ndarray, "image head rows columns"] | None
    """The class token's attention in the last block; None where there is no class token."""


@dataclass(frozen=True, kw_only=True, eq=False)
class FeatureProbe(RunEvaluator[Probed]):
    """Figures and pictures of frozen features."""

    name = "probe"
    every: int
    images: Dataset
    """What is measured."""
    examples: Dataset | None
    """Labelled training images to fit least squares on; None measures without labels."""
    preprocessing: Preprocessing
    batch: int
    allowance: Budget | None

    def evaluate(self, model: Model) -> Probed:
        """Compute features, and measure them."""
        engine = TorchEngine(model, self.preprocessing)
        features, rows = self._features(engine, self.images)
        values = {"spread": spread(features)}
        if self.examples is None:
            copies, _ = self._features(engine, self.images, changed=True)
            values["found"] = copies_found(features, copies)
        else:
            known, places = self._features(engine, self.examples)
            answers = ridge(known, self.examples.targets[places], len(self.images.labels), features)["ridge"]
            values["accuracy"] = float((answers == self.images.targets[rows]).mean())
        count = min(SHOWN, len(rows))
        shown = np.linspace(0, len(rows) - 1, count).astype(int)  # from all over the data: often it is sorted
        near = nearest(features, features[shown], NEAREST + 1).tolist()
        groups = [[at, *[other for other in row if other != at][:NEAREST]] for at, row in zip(shown, near, strict=True)]
        return Probed(
            values=values,
            neighbours=[[int(rows[at]) for at in group] for group in groups],
            attention=self._attention(engine, model),
        )

    def figures(self, outcome: Probed) -> dict[str, float]:
        """Return the numbers that are journaled."""
        return outcome.values

    def sections(self, outcome: Probed) -> list[Section]:
        """Show figures, neighbours, and the class token's attention."""
        figures = [
            _figure(name, outcome.values[name]) for name in ("accuracy", "found", "spread") if name in outcome.values
        ]
        words = "Features of different images point in different directions."
        if outcome.values["spread"] < COLLAPSED:
            words = "Features of all images point in nearly one direction: the model has collapsed."
        rows = [
            Row(pictures=[self._pixels(index) for index in group], words=[self._word(index) for index in group])
            for group in outcome.neighbours
        ]
        sections = [replace(sentence("Features", words), figures=tuple(figures)), neighbours_section(rows)]
        if outcome.attention is not None:
            looked = [self._pixels(index) for index in range(len(outcome.attention))]
            sections.append(attention_section(looked, [list(heads) for heads in outcome.attention]))
        return sections

    def _features(self, engine: TorchEngine, dataset: Dataset, *, changed: bool = False) -> tuple[Matrix, Rows]:
        """Return the features of every image that can be read, and which these are."""
        values, read = [], []
        for batch in evaluation_batches(dataset, self.preprocessing, batch=self.batch, skip_broken=self.allowance):
            if len(batch.indices):
                values.append(engine.features(changed_copies(batch.images) if changed else batch.images).float().cpu())
                read.append(batch.indices.numpy())
        if not read:
            raise InputError(f"none of {len(dataset)} images to measure features on could be read; fix them.")
        return torch.cat(values), np.concatenate(read)

    def _attention(self, engine: TorchEngine, model: Model) -> Float[np.ndarray, "image head rows columns"] | None:
        """Return what the class token reads in the last block, for the first images."""
        config = model.config
        if config.grid is None or not config.num_prefix or not config.attention_shape[0]:
            return None
        last = config.attention_shape[0] - 1
        inputs = engine.inputs(torch.stack([self._pixels(index) for index in range(min(LOOKED, len(self.images)))]))
        with torch.no_grad():
            maps = model.attention_maps(inputs, blocks=[last])[last]
        return maps[:, :, 0, config.num_prefix :].unflatten(2, config.grid).float().cpu().numpy()

    def _pixels(self, index: int) -> torch.Tensor:
        return self._first[index] if index < len(self._first) else self._read([index])[0]

    @cached_property
    def _first(self) -> PixelBatch:
        return self._read(range(min(LOOKED, len(self.images))))

    def _read(self, indices: "range | list[int]") -> PixelBatch:
        """Return some images as the model gets them, before they are normalised."""
        some = self.images.take(list(indices))
        return next(
            iter(evaluation_batches(some, self.preprocessing, batch=len(some), skip_broken=self.allowance))
        ).images

    def _word(self, index: int) -> str:
        target = int(self.images.targets[index])
        return self.images.labels[target] if target >= 0 else self.images.name(index).rpartition("/")[2]


def changed_copies(images: PixelBatch) -> PixelBatch:
    """Mirror images, and cut off a sixteenth on every side."""
    height, width = images.shape[2:]
    cut = images[:, :, height // 16 : height - height // 16, width // 16 : width - width // 16].flip(3)
    sized = F.interpolate(cut.float(), size=(height, width), mode="bilinear", align_corners=False, antialias=True)
    return sized.round().clamp(0, 255).to(torch.uint8)


def probe_data(probe: Probe, data: RunData, where: str) -> tuple[Dataset, Dataset | None]:
    """Return what is measured, and the labelled images to fit on, or None without labels.

    Labels that are requested and absent are refused.
    """
    images = _spread(data.evaluation or data.train)
    counts = data.train.counts
    labelled = len(counts) > 1 and int(counts.min()) > 0 and data.evaluation is not None
    known = images.take(np.flatnonzero(images.targets >= 0))
    if probe == "neighbours" or (probe == "auto" and not (labelled and len(known))):
        return images, None
    if not (labelled and len(known)):
        raise InputError(
            f"probe is 'fewshot', but {where} has no labels to measure with: at least two classes, in training and "
            "beside it; leave `probe` out, or choose neighbours."
        )
    shots = max(min(SHOTS, int(counts.min()), MOST_SHOTS // len(counts)), 1)
    return known, few_shot(data.train, shots, 0)


def _spread(dataset: Dataset) -> Dataset:
    """Take some images from the whole length of a split."""
    return dataset.take(np.unique(np.linspace(0, len(dataset) - 1, min(EVALUATED, len(dataset))).astype(int)))


def _figure(name: str, value: float) -> Figure:
    if name == "spread":
        return Figure(label="spread of features", value=f"{value:.2f}", note="1 is even, 0 is collapsed")
    label = "few-shot accuracy" if name == "accuracy" else "changed copies found"
    return Figure(label=label, value=percent(value))
