"""The panels of an inspection about layers: lengths, ranks, similarity and changed weights; and all panels together."""

import numpy as np
from jaxtyping import Float

from vitrail.report.charts import ROLES, Chart, Line
from vitrail.report.drawings import Drawing, Matrix
from vitrail.report.inspection_page import Panel
from vitrail.report.markup import percent
from vitrail.verbs.inspection import Inspection
from vitrail.verbs.inspection_tables import dead_panel, pooling_panel
from vitrail.verbs.inspection_views import (
    absent,
    attention_panels,
    filters_panel,
    importance_panel,
    positions_panel,
    rollout_panel,
    short,
)


def panels(inspection: Inspection) -> list[Panel]:
    """Return all panels, in the order of the page; one that has nothing to show gives the reason."""
    shown = [
        filters_panel(inspection),
        positions_panel(inspection),
        *attention_panels(inspection),
        rollout_panel(inspection),
        norms_panel(inspection),
        cka_panel(inspection),
        rank_panel(inspection),
        dead_panel(inspection),
        importance_panel(inspection),
        pooling_panel(inspection),
    ]
    shown += [weights_panel(inspection)] if inspection.comparisons else []
    return [panel for panel in shown if panel.drawings or panel.rows or panel.sentences]


def norms_panel(inspection: Inspection) -> Panel:
    """Draw the histogram of the last layer's lengths, and list them for each layer."""
    drawings: list[Drawing] = []
    sentences = list(absent(inspection, "norms"))
    rows = []
    for number, model in enumerate(inspection.models):
        if model.layers is None:
            continue
        outliers = model.layers.outliers
        centres = np.log10(np.sqrt(outliers.edges[1:] * outliers.edges[:-1]))
        line = Line(name="", x=centres, y=outliers.counts / outliers.counts.sum(), role=ROLES[number % len(ROLES)])
        drawings.append(
            Chart(
                title=f"Lengths of {short(model)} after its last layer",
                lines=[line],
                x_label="length",
                y_label="share of places",
                x_ticks=tuple(np.log10(round_numbers(outliers.edges[0], outliers.edges[-1])).tolist()),
                x_axis=lambda power: f"{10**power:.3g}",
                y_axis=lambda share: percent(share, 1),
                y_range=(0.0, None),
            )
        )
        apart = (
            "lengths are of one kind: no outliers."
            if outliers.threshold is None
            else (f"{percent(outliers.share, 2)} of places are outliers, with a length above {outliers.threshold:.3g}.")
        )
        sentences.append(f"{short(model)}: {apart}")
        rows += [
            (f"{short(model)}, {layer}", *(f"{value:.3g}" for value in values))
            for layer, values in zip(model.layers.names, model.layers.lengths, strict=True)
        ]
    about = (
        "The length of the features at each patch, or at each place of a feature map. Large models may have a few "
        "tokens that are far longer than the others and say nothing about their place (Darcet et al., 2023)."
    )
    columns = ("layer", "median", "99th percentile", "largest")
    return Panel(
        key="norms",
        title="Lengths of tokens",
        about=about,
        drawings=drawings,
        columns=columns,
        rows=rows,
        sentences=sentences,
    )


def round_numbers(low: float, high: float, most: int = 7) -> Float[np.ndarray, "number"]:
    """Return up to `most` round numbers for a logarithmic axis: 10, 12, 14, or 5, 10, 20, or 1, 10, 100."""
    if high < 10 * low:
        size = 10.0 ** np.floor(np.log10(high - low))
        steps = (share * size for share in (0.1, 0.2, 0.5, 1))
        numbers = (step * np.arange(np.ceil(low / step), np.floor(high / step) + 1) for step in steps)
        return next((each for each in numbers if len(each) <= most), np.array([high]))
    powers = 10.0 ** np.arange(np.floor(np.log10(low)), np.ceil(np.log10(high)) + 1)
    fine, coarse = (
        each[(low <= each) & (each <= high)] for each in (np.outer(powers, (1.0, 2.0, 5.0)).ravel(), powers)
    )
    return fine if len(fine) <= most else coarse[:: -(-len(coarse) // most)]


def cka_panel(inspection: Inspection) -> Panel:
    """Draw how alike layers are, within each model and between the first and the others."""
    layers = {model.name: model.layers for model in inspection.models if model.layers is not None}
    tables = [(short(name), name, name, figures.alike) for name, figures in layers.items()]
    tables += [
        (f"{short(pair.first)} and {short(pair.second)}", pair.first, pair.second, pair.alike)
        for pair in inspection.comparisons
        if pair.alike is not None
    ]
    drawings = [
        Matrix(
            title=title,
            values=values,
            x_label=f"layer of {short(second)}",
            y_label=f"layer of {short(first)}",
            x_names=[str(number) for number in range(len(layers[second].names))],
            y_names=[str(number) for number in range(len(layers[first].names))],
        )
        for title, first, second, values in tables
        if np.isfinite(values).any()
    ]
    about = (
        "How alike two layers see the images (linear CKA, unbiased), on features as a mean over places: 1 "
        "is the same but for a rotation and a scale, 0 unrelated. Layer 0 is the embedding, or the root of a ResNet."
    )
    sentences = list(absent(inspection, "cka"))
    if tables and not drawings:
        sentences.append("CKA needs at least 4 images that are not all the same to the model.")
    return Panel(key="cka", title="Similarity of layers", about=about, drawings=drawings, sentences=sentences)


def rank_panel(inspection: Inspection) -> Panel:
    """Draw the effective rank of each layer."""
    models = [model for model in inspection.models if model.layers is not None]
    lines = [
        Line(
            name=short(model),
            x=np.arange(len(model.layers.ranks), dtype=float),
            y=np.array(model.layers.ranks),
            role=ROLES[number % len(ROLES)],
            dots="both",
        )
        for number, model in enumerate(models)
        if model.layers is not None
    ]
    about = (
        "How many directions the features of a layer use: exp of the entropy of their singular values, at up to 16 "
        "places of each image. Layer 0 is the embedding, or the root of a ResNet."
    )
    chart = Chart(
        title="Effective rank", lines=lines, x_label="layer", y_label="directions", y_range=(0.0, None), whole=True
    )
    rows = [
        (short(model), f"{model.representation_rank:.1f}") for model in models if model.representation_rank is not None
    ]
    return Panel(
        key="rank",
        title="Rank of features",
        about=about,
        drawings=[chart] if lines else [],
        columns=("model", "rank of the representation, over images"),
        rows=rows,
        sentences=absent(inspection, "rank"),
    )


def weights_panel(inspection: Inspection) -> Panel:
    """Draw how far the weights of each layer are from the first model's."""
    names = inspection.models[0].layer_names
    lines, sentences = [], []
    for number, pair in enumerate(inspection.comparisons):
        if not pair.changes:
            sentences.append(
                f"{short(pair.second)} has no weights of the same names and shapes as {short(pair.first)}, so they "
                "are not compared."
            )
            continue
        x = np.array([names.index(change.layer) for change in pair.changes], dtype=float)
        y = np.array([change.change for change in pair.changes])
        lines.append(Line(name=short(pair.second), x=x, y=y, role=ROLES[number % len(ROLES)], dots="both"))
        if pair.unmatched:
            sentences.append(
                f"{len(pair.unmatched)} tensors of {short(pair.second)} are not in both or of another shape, such as "
                f"{pair.unmatched[0]}."
            )
    first = short(inspection.models[0])
    about = f"The length of the difference of each layer's weights from {first}'s, as a share of their length there."
    chart = Chart(
        title=f"Change of weights from {first}",
        lines=lines,
        x_label="layer, from the input to the head",
        y_label="relative change",
        x_ticks=tuple(float(at) for at in range(0, len(names), -(-len(names) // 14))),
        x_axis=lambda at: names[int(at)] if at.is_integer() and 0 <= at < len(names) else "",
        y_range=(0.0, None),
    )
    return Panel(
        key="weights",
        title="What training changed",
        about=about,
        drawings=[chart] if lines else [],
        sentences=sentences,
    )
