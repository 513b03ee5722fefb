"""What an inspection holds: the figures of each model, and of each pair."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from vitrail.analysis.change import WeightChange
from vitrail.analysis.filters import COMPONENTS, Components
from vitrail.analysis.importance import BranchFigure
from vitrail.analysis.norms import Outliers
from vitrail.base.table import Table, Tabular
from vitrail.model.patches import Size
from vitrail.report.markup import percent
from vitrail.report.overlay import Picture

POOLINGS = ("representation", "class token", "mean of patches")
Matrix = Float[np.ndarray, "row column"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Attention:
    """How far and how sharply each head attends."""

    blocks: tuple[int, ...]
    heads: tuple[int, ...]
    distance: Matrix
    """Mean distance in pixels, a row for each block and a column for each head."""
    entropy: Matrix
    """Mean entropy in nats."""
    uniform: float
    """The distance of a head that attends to all patches equally."""
    tokens: int
    """The length of the sequence, whose logarithm is the largest entropy: that of attention to all tokens equally."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Importance:
    """What happens without each branch."""

    measure: str
    """What the outputs are: probabilities, or features of a model without classes."""
    figures: tuple[BranchFigure, ...]
    accuracy: float | None
    """The accuracy of the whole; None where the images have no classes that the model knows."""
    images: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Layers:
    """Figures of each layer from the input on."""

    names: tuple[str, ...]
    lengths: Matrix
    """The median, the 99th percentile and the largest of the lengths of features, a row for each layer."""
    ranks: tuple[float, ...]
    """The effective rank of features at some places of all images."""
    alike: Matrix
    """CKA of every two layers."""
    outliers: Outliers
    """Lengths of the last layer's features."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ModelFigures:
    """What one model has inside; None, or empty, where it has no such thing or there were no images."""

    name: str
    layer_names: tuple[str, ...] = ()
    """What the layers are called, from the input to the head."""
    filters: Components | None = None
    """Principal components of the filters that see pixels."""
    positions: Mapping[str, Float[np.ndarray, "shown grid_rows grid_columns"]] = field(default_factory=dict)
    """Cosines of positions, by the table's name."""
    shown: Size = (0, 0)
    """How many rows and columns of patches these are for."""
    contrasts: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """The mean cosine of positions of neighbours, and of patches at least 4 away, by the table's name."""
    attention: Attention | None = None
    layers: Layers | None = None
    representation_rank: float | None = None
    """The effective rank of what the last linear layer sees."""
    dead: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """Hidden units of each branch that never speak, and all of them."""
    importance: Importance | None = None
    pooling: Mapping[str, float] = field(default_factory=dict)
    """Accuracy of least squares on what a head sees or could see."""
    examples: tuple[tuple[str, Picture], ...] = ()
    """Names of images, and what rollout shows on them."""
    absences: Mapping[str, str] = field(default_factory=dict)
    """Why a panel has nothing of this model: a sentence, by the panel's key."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Comparison:
    """A model beside the first one."""

    first: str
    second: str
    alike: Matrix | None
    """CKA of each layer of the first with each of the second; None without images."""
    changes: tuple[WeightChange, ...]
    """How far the weights of each layer are from the first model's."""
    unmatched: tuple[str, ...]
    """Tensors that are not in both, or of other shapes."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Inspection(Tabular):
    """What one or more models have learned; `panels()` draws it."""

    models: tuple[ModelFigures, ...]
    comparisons: tuple[Comparison, ...] = ()
    data: str | None = None
    """What the images are from; None without data."""
    images: int = 0
    """How many were looked at."""
    failures: tuple[tuple[str, str], ...] = ()
    """Images that could not be read, and why."""
    notes: tuple[str, ...] = ()
    files: Mapping[str, Path] = field(default_factory=dict)
    """What was written, by kind."""

    def tables(self) -> list[Table]:
        """Return a table for each model."""
        looked = f"{self.images:,} images of {self.data}." if self.data else "No images were looked at."
        tables = []
        for model in self.models:
            rows = [(name, value) for name, text in _ROWS if (value := text(model))]
            tables.append(Table(title=f"Inside {model.name}", columns=("", "value"), rows=tuple(rows), notes=(looked,)))
        return tables

    def to_dict(self) -> dict[str, Any]:
        """Return all figures as values that JSON can hold, by panel."""
        from vitrail.verbs.inspection_figures import panel_figures

        return {
            "models": [model.name for model in self.models],
            **{kind: str(path) for kind, path in self.files.items()},
            "data": self.data,
            "images": self.images,
            "panels": panel_figures(self),
            "failures": [{"image": name, "error": reason} for name, reason in self.failures],
            "notes": list(self.notes),
        }


def _filters(model: ModelFigures) -> str:
    return "" if model.filters is None else percent(float(model.filters.shares.sum()))


def _positions(model: ModelFigures) -> str:
    near, far = next(iter(model.contrasts.values()), (math.nan, math.nan))
    return "" if math.isnan(far) else f"{near:.2f} and {far:.2f}"


def _distance(model: ModelFigures) -> str:
    if model.attention is None:
        return ""
    means = model.attention.distance.mean(axis=1)
    return f"{means[0]:.1f} to {means[-1]:.1f} pixels"


def _local(model: ModelFigures) -> str:
    if model.attention is None:
        return ""
    first = model.attention.distance[0]
    return f"{first.min():.1f} to {first.max():.1f} pixels"


def _entropy(model: ModelFigures) -> str:
    if model.attention is None:
        return ""
    means = model.attention.entropy.mean(axis=1)
    return f"{means[0]:.2f} to {means[-1]:.2f} of {np.log(model.attention.tokens):.2f} nats"


def _outliers(model: ModelFigures) -> str:
    if model.layers is None:
        return ""
    outliers = model.layers.outliers
    return "none" if outliers.threshold is None else f"{percent(outliers.share, 2)} above {outliers.threshold:.3g}"


def _dead(model: ModelFigures) -> str:
    units = sum(total for _, total in model.dead.values())
    return f"{sum(dead for dead, _ in model.dead.values()):,} of {units:,}" if units else ""


def _most(model: ModelFigures) -> str:
    if model.importance is None:
        return ""
    figure = max(
        (figure for figure in model.importance.figures if figure.branch.kind != "head"),
        key=lambda figure: figure.change if figure.accuracy is None else -figure.accuracy,
    )
    right = f"change {figure.change:.3f}" if figure.accuracy is None else percent(figure.accuracy)
    whole = "" if model.importance.accuracy is None else f", whole {percent(model.importance.accuracy)}"
    return f"{figure.branch.name}: {right}{whole}"


def _rank(model: ModelFigures) -> str:
    return "" if model.representation_rank is None else f"{model.representation_rank:.1f}"


def _pooled(name: str, model: ModelFigures) -> str:
    return percent(model.pooling[name]) if name in model.pooling else ""


_ROWS: tuple[tuple[str, Callable[[ModelFigures], str]], ...] = (
    (f"variance in {COMPONENTS} components of the filters", _filters),
    ("cosine of near and of far positions", _positions),
    ("attention distance, first to last block", _distance),
    ("attention distance in the first block", _local),
    ("attention entropy, first to last block", _entropy),
    ("outlier tokens", _outliers),
    ("effective rank of the representation", _rank),
    ("hidden units that never speak", _dead),
    ("without the most important branch", _most),
    *((f"least squares on the {name}", partial(_pooled, name)) for name in POOLINGS),
)
