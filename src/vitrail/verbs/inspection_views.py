"""An inspection as panels: the paper's Fig. 7, 10, 11 and 14, and what later papers look at."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from vitrail.analysis.importance import BranchFigure
from vitrail.report.charts import ROLES, Chart, Line
from vitrail.report.drawings import Drawing, Matrix, Tiles, coloured, filter_pictures, padded, tiled
from vitrail.report.inspection_page import Panel
from vitrail.report.markup import percent
from vitrail.verbs.inspection import Attention, Importance, Inspection, ModelFigures

MOST_TABLES = 3
"""Tables of positions of one model that are drawn: the first ones; the JSON file has all."""


def short(model: ModelFigures | str) -> str:
    """Return a model's name without its folders, or with the last one where the name alone is not telling."""
    path = Path(model if isinstance(model, str) else model.name)
    return f"{path.parent.name}/{path.name}" if path.name == "model.safetensors" and path.parent.name else path.name


def filters_panel(inspection: Inspection) -> Panel:
    """Draw Fig. 7 left."""
    drawings = [
        Tiles(
            title=f"{short(model)}: {percent(float(model.filters.shares.sum()))} of the variance",
            picture=tiled(filter_pictures(model.filters.directions.numpy()), columns=7),
        )
        for model in inspection.models
        if model.filters is not None
    ]
    about = (
        "The first principal components of the filters that see pixels (Fig. 7 left), the strongest first, each scaled "
        "to its own range: of a Vision Transformer the embedding E, of a hybrid or a ResNet the first convolution."
    )
    return Panel(
        key="filters", title="Filters", about=about, drawings=drawings, sentences=absent(inspection, "filters")
    )


def positions_panel(inspection: Inspection) -> Panel:
    """Draw Fig. 7 centre; with several models, Fig. 10."""
    drawings = [
        Tiles(
            title=f"{short(model)}: {name}",
            picture=tiled([coloured(grid, -1.0, 1.0) for grid in grids], columns=model.shown[1]),
        )
        for model in inspection.models
        for name, grids in list(model.positions.items())[:MOST_TABLES]
    ]
    about = (
        "The cosine of each patch's position with those of all patches, as a grid of grids (Fig. 7 centre, Fig. 10): "
        "from -1, dark blue, to 1, yellow. Of relative positions, the cosine of each offset with the offset 0."
    )
    sentences = list(absent(inspection, "positions"))
    for model in inspection.models:
        if len(model.positions) > MOST_TABLES:
            sentences.append(f"{short(model)} has {len(model.positions)} tables; the JSON file has all of them.")
    return Panel(key="positions", title="Positions", about=about, drawings=drawings, sentences=sentences)


def attention_panels(inspection: Inspection) -> list[Panel]:
    """Draw Fig. 7 right, which for a hybrid beside a plain model is Fig. 11, and the same for entropy."""
    distance = _heads(
        inspection,
        "distance",
        "Attention distance",
        "pixels",
        lambda attention: attention.distance,
        equally=("all patches equally", lambda attention: attention.uniform),
    )
    entropy = _heads(
        inspection,
        "entropy",
        "Attention entropy",
        "nats",
        lambda attention: attention.entropy,
        equally=("all tokens equally", lambda attention: math.log(attention.tokens)),
    )
    about = {
        "distance": "How far each head looks: the distance from a patch to what it attends to, weighted by attention, "
        "as a mean over patches and images (Fig. 7 right, Fig. 11). Each dot is a head, and the dashed line one that "
        "attends to all patches equally. Tokens without a place are left out.",
        "entropy": "How many tokens each head looks at: the entropy of its attention, as a mean over tokens and "
        "images. 0 is one token, the dashed line all tokens equally. Each dot is a head.",
    }
    return [
        Panel(
            key=key,
            title=title,
            about=about[key],
            drawings=drawings,
            sentences=absent(inspection, key),
        )
        for key, title, drawings in (distance, entropy)
    ]


def _heads(
    inspection: Inspection,
    key: str,
    title: str,
    unit: str,
    values_of: Callable[[Attention], np.ndarray],
    *,
    equally: tuple[str, Callable[[Attention], float]],
) -> tuple[str, str, list[Drawing]]:
    """Draw a chart of each model with a dot for each head, and one of the means where there are several."""
    models = [model for model in inspection.models if model.attention is not None]
    words, level_of = equally
    maps = [model.attention for model in models if model.attention is not None]
    top = max((max(float(values_of(each).max()), level_of(each)) for each in maps), default=0.0) * 1.08
    drawings: list[Drawing] = []
    means = []
    for number, model in enumerate(models):
        assert model.attention is not None  # noqa: S101 - chosen so
        values, role = values_of(model.attention), ROLES[number % len(ROLES)]
        blocks = np.array(model.attention.blocks, dtype=float)
        x = np.repeat(blocks, values.shape[1])
        mean = Line(name="mean over heads", x=blocks, y=values.mean(axis=1), role=role, dots="both")
        lines = [Line(name="heads", x=x, y=values.flatten(), role="muted", dots="only"), mean]
        level = np.full(len(blocks), level_of(model.attention))
        lines.append(Line(name=words, x=blocks, y=level, role="muted", dashed=True))
        drawings.append(_depth_chart(f"{title} of {short(model)}", lines, unit, top))
        means.append(Line(name=short(model), x=blocks, y=values.mean(axis=1), role=role, dots="both"))
    if len(models) > 1:
        drawings.append(_depth_chart(f"{title}, mean over heads", means, unit, top))
    return key, title, drawings


def _depth_chart(title: str, lines: Sequence[Line], unit: str, top: float) -> Chart:
    blocks = sorted({float(x) for line in lines for x in line.x})
    return Chart(
        title=title,
        lines=lines,
        x_label="block",
        y_label=unit,
        y_range=(0.0, top or None),
        x_ticks=tuple(blocks[:: -(-len(blocks) // 12)]),
    )


def rollout_panel(inspection: Inspection) -> Panel:
    """Draw Fig. 14."""
    drawings = [
        Tiles(title=short(model), picture=tiled(padded([picture for _, picture in model.examples]), columns=2, gap=6))
        for model in inspection.models
        if model.examples
    ]
    about = (
        "Attention of all blocks multiplied together, from the input to what the head sees (Fig. 6, Fig. 14): where "
        "information may come from, for no class in particular. vitrail explain shows other maps, and measures them."
    )
    return Panel(
        key="rollout",
        title="Attention of examples",
        about=about,
        drawings=drawings,
        sentences=absent(inspection, "rollout"),
    )


def importance_panel(inspection: Inspection) -> Panel:
    """Draw what is lost without each branch, and without each head."""
    drawings: list[Drawing] = []
    sentences = list(absent(inspection, "importance"))
    for model in inspection.models:
        importance = model.importance
        if importance is None or not importance.figures:
            continue
        drawings += [_branch_chart(short(model), importance), *_head_matrix(short(model), importance)]
        if importance.accuracy is None:
            sentences.append(
                f"{short(model)}: accuracy needs data with its classes; this is the change of its {importance.measure}."
            )
        else:
            right = percent(importance.accuracy)
            sentences.append(f"{short(model)}: the accuracy of the whole is {right} on {importance.images} images.")
    about = "What is lost when one branch of the network is set to zero, and the residual beside it passes unchanged."
    title = "How much each part matters"
    return Panel(key="importance", title=title, about=about, drawings=drawings, sentences=sentences)


def _loss(importance: Importance, figure: BranchFigure) -> float:
    """Return points of accuracy, or the change of outputs where there is none."""
    if importance.accuracy is None or figure.accuracy is None:
        return figure.change
    return 100 * (importance.accuracy - figure.accuracy)


def _unit(importance: Importance) -> str:
    return f"change of {importance.measure}" if importance.accuracy is None else "points of accuracy lost"


def _branch_chart(name: str, importance: Importance) -> Chart:
    lines = []
    kinds = {"attention": "attention", "mlp": "MLP", "unit": "ResNet unit"}
    for role, (kind, title) in zip(ROLES, kinds.items(), strict=False):
        figures = [figure for figure in importance.figures if figure.branch.kind == kind]
        if figures:
            x = np.array([figure.branch.layer for figure in figures], dtype=float)
            y = np.array([_loss(importance, figure) for figure in figures])
            lines.append(Line(name=title, x=x, y=y, role=role, dots="both"))
    heading = f"{name}: {_unit(importance)} without a branch"
    return Chart(title=heading, lines=lines, x_label="block, or unit", y_label=_unit(importance), whole=True)


def _head_matrix(name: str, importance: Importance) -> list[Drawing]:
    heads = [
        (figure.branch, _loss(importance, figure)) for figure in importance.figures if figure.branch.head is not None
    ]
    if not heads:
        return []
    depth = max(branch.layer for branch, _ in heads) + 1
    values = np.array([loss for _, loss in heads]).reshape(depth, -1)
    matrix = Matrix(
        title=f"{name}: {_unit(importance)} without one head",
        values=values,
        x_label="head",
        y_label="block",
        x_names=[str(number) for number in range(values.shape[1])],
        y_names=[str(number) for number in range(depth)],
        low=None,
        high=None,
    )
    return [matrix]


def absent(inspection: Inspection, key: str) -> list[str]:
    """Return why models are not in a panel, a sentence each."""
    return [f"{short(model)}: {model.absences[key]}" for model in inspection.models if key in model.absences]
