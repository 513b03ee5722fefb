"""The facts about a model for a notebook: kind, cost, image size, classes."""

from collections.abc import Sequence

from vitrail.base.table import Table
from vitrail.model.contract import Model
from vitrail.model.patches import size_text

MOST_LABELS = 5
MOST_DIGITS = 12


def card(model: Model) -> str:
    """Return the facts about a model as an HTML table; `print(model)` lists its modules."""
    config, info = model.config, model.info
    parameters = sum(parameter.numel() for parameter in model.parameters())
    rows = [
        ("parameters", f"{parameters:,}"),
        ("multiply-accumulates", f"{sum(unit.macs for unit in model.units()) / 1e9:,.2f} G for an image"),
        ("images", f"{size_text(config.image_size)} pixels, {config.channels} channels"),
        ("classes", _classes(config.num_classes, info.labels)),
    ]
    if info.digest is not None:
        rows.append(("file", f"SHA-256 {info.digest[:MOST_DIGITS]}..."))
    title = f"{config.noun} ({config.summary})"
    return Table(title=title, columns=("", ""), rows=tuple(rows), notes=info.notes).html()


def _classes(count: int, labels: Sequence[str] | None) -> str:
    if labels is None or not count:
        return f"{count:,}" if count else "none: the model returns its features"
    more = ", ..." if len(labels) > MOST_LABELS else ""
    return f"{count:,}: {', '.join(labels[:MOST_LABELS])}{more}"
