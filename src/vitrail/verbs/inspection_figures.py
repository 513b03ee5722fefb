"""The numbers of each panel of an inspection, as values that JSON can hold."""

import math
from typing import Any

import numpy as np

from vitrail.verbs.inspection import Inspection, ModelFigures


def panel_figures(inspection: Inspection) -> dict[str, Any]:
    """Return the numbers behind each panel, by its key; a model without such numbers is not listed."""
    figures = {key: _of_models(inspection, of) for key, of in _PANELS.items()}
    figures["cka"] |= {
        f"{pair.first} / {pair.second}": numbers(pair.alike)
        for pair in inspection.comparisons
        if pair.alike is not None
    }
    figures["weights"] = {
        pair.second: {
            "relative_change": {change.layer: finite(change.change) for change in pair.changes},
            "not_compared": list(pair.unmatched),
        }
        for pair in inspection.comparisons
    }
    return {key: values for key, values in figures.items() if values}


def numbers(values: np.ndarray, digits: int = 5) -> Any:
    """Return an array as nested lists, NaN as None."""
    rounded = np.round(np.asarray(values, dtype=float), digits).astype(object)
    rounded[~np.isfinite(values)] = None
    return rounded.tolist()


def finite(value: float) -> float | None:
    """Return a number, or None for one that JSON does not have."""
    return value if math.isfinite(value) else None


def _of_models(inspection: Inspection, of: Any) -> dict[str, Any]:
    values = ((model.name, of(model)) for model in inspection.models)
    return {name: value for name, value in values if value}


def _filters(model: ModelFigures) -> Any:
    if model.filters is None:
        return None
    return {
        "explained_variance": numbers(model.filters.shares.numpy()),
        "components": numbers(model.filters.directions.numpy()),
    }


def _positions(model: ModelFigures) -> Any:
    grids = {name: numbers(grids, 4) for name, grids in model.positions.items()}
    means = {name: {"neighbours": finite(near), "far": finite(far)} for name, (near, far) in model.contrasts.items()}
    return {"shown": list(model.shown), "cosines": grids, "mean_cosines": means} if grids else None


def _distance(model: ModelFigures) -> Any:
    attention = model.attention
    if attention is None:
        return None
    return {
        "blocks": list(attention.blocks),
        "heads": list(attention.heads),
        "pixels": numbers(attention.distance),
        "equally": attention.uniform,
    }


def _entropy(model: ModelFigures) -> Any:
    attention = model.attention
    if attention is None:
        return None
    largest = math.log(attention.tokens)
    return {
        "blocks": list(attention.blocks),
        "heads": list(attention.heads),
        "nats": numbers(attention.entropy),
        "largest": largest,
    }


def _norms(model: ModelFigures) -> Any:
    if model.layers is None:
        return None
    outliers, names = model.layers.outliers, ("median", "percentile_99", "largest")
    return {
        "layers": {
            layer: dict(zip(names, numbers(row), strict=True))
            for layer, row in zip(model.layers.names, model.layers.lengths, strict=True)
        },
        "last_layer": {
            "edges": numbers(outliers.edges),
            "tokens": outliers.counts.tolist(),
            "threshold": outliers.threshold,
            "share_above": outliers.share,
        },
    }


def _cka(model: ModelFigures) -> Any:
    if model.layers is None:
        return None
    return {"layers": list(model.layers.names), "cka": numbers(model.layers.alike)}


def _rank(model: ModelFigures) -> Any:
    if model.layers is None:
        return None
    ranks = dict(zip(model.layers.names, model.layers.ranks, strict=True))
    return {"layers": ranks, "representation": model.representation_rank}


def _importance(model: ModelFigures) -> Any:
    importance = model.importance
    if importance is None:
        return None
    return {
        "measure": importance.measure,
        "images": importance.images,
        "accuracy": importance.accuracy,
        "without": {
            figure.branch.name: {"change": finite(figure.change), "accuracy": figure.accuracy}
            for figure in importance.figures
        },
    }


_PANELS = {
    "filters": _filters,
    "positions": _positions,
    "distance": _distance,
    "entropy": _entropy,
    "rollout": lambda model: [name for name, _ in model.examples],
    "norms": _norms,
    "cka": _cka,
    "rank": _rank,
    "dead": lambda model: {name: {"dead": dead, "units": units} for name, (dead, units) in model.dead.items()},
    "importance": _importance,
    "pooling": lambda model: dict(model.pooling),
}
