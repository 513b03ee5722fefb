"""The panels of an inspection whose numbers stand in a table too: dead units, and what a linear classifier reads."""

import numpy as np

from vitrail.report.charts import ROLES, Chart, Line
from vitrail.report.drawings import Matrix
from vitrail.report.inspection_page import Panel
from vitrail.report.markup import percent
from vitrail.verbs.inspection import Inspection
from vitrail.verbs.inspection_views import absent, short


def dead_panel(inspection: Inspection) -> Panel:
    """List the hidden units that never speak."""
    rows = [
        (f"{short(model)}, {name}", f"{dead:,}", f"{units:,}", percent(dead / units))
        for model in inspection.models
        for name, (dead, units) in model.dead.items()
    ]
    about = (
        "Hidden units, of each block's MLP or of each unit of a ResNet, whose activation on these images is never "
        "above a thousandth of the layer's root mean square."
    )
    lines = [
        Line(
            name=short(model),
            x=np.arange(len(model.dead), dtype=float),
            y=np.array([dead / units for dead, units in model.dead.values()]),
            role=ROLES[number % len(ROLES)],
            dots="both",
        )
        for number, model in enumerate(inspection.models)
        if model.dead
    ]
    chart = Chart(
        title="Units that never speak",
        lines=lines,
        x_label="branch, from the input to the head",
        y_label="share of units",
        y_axis=lambda share: percent(share, 1),
        y_range=(0.0, max([1.1 * float(line.y.max()) for line in lines], default=0.0) or 0.05),
        whole=True,
    )
    return Panel(
        key="dead",
        title="Dead units",
        about=about,
        drawings=[chart] if lines else [],
        columns=("branch", "never speak", "units", "share"),
        rows=rows,
        sentences=absent(inspection, "dead"),
    )


def pooling_panel(inspection: Inspection) -> Panel:
    """List how well a linear classifier does on what a head sees, or could see."""
    names = list(dict.fromkeys(name for model in inspection.models for name in model.pooling))
    rows = [
        (short(model), *(percent(model.pooling[name]) if name in model.pooling else "" for name in names))
        for model in inspection.models
        if model.pooling
    ]
    about = (
        "Accuracy of least squares in closed form on the features of the last layer, fitted on half of the images of "
        "each class and measured on the other half, both ways. The representation is what the model's own head sees."
    )
    models = [model for model in inspection.models if model.pooling]
    matrix = Matrix(
        title="Accuracy of least squares",
        values=np.array([[model.pooling.get(name, np.nan) for name in names] for model in models]).reshape(
            len(models), len(names)
        ),
        x_label="what is read",
        y_label="model",
        x_names=names,
        y_names=[short(model) for model in models],
    )
    return Panel(
        key="pooling",
        title="Class token against mean pooling",
        about=about,
        drawings=[matrix] if models else [],
        columns=("model", *names),
        rows=rows,
        sentences=absent(inspection, "pooling"),
    )
