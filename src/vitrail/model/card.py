"""A model as a notebook shows it: what it is, what it costs, what it knows."""

from collections.abc import Sequence

from vitrail.base.notebook import table
from vitrail.model.contract import Model
from vitrail.model.patches import size_text

MOST_LABELS = 5
MOST_DIGITS = 12


def card(model: Model) -> str:
    """Return the facts about a model as an HTML table; its modules are what `print(model)` lists."""
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
    return table(f"{config.noun} ({config.summary})", ("", ""), rows, notes=info.notes)


def _classes(count: int, labels: Sequence[str] | None) -> str:
    if labels is None or not count:
        return f"{count:,}" if count else "none: the model returns its features"
    more = ", ..." if len(labels) > MOST_LABELS else ""
    return f"{count:,}: {', '.join(labels[:MOST_LABELS])}{more}"
