"""What an evaluation needs of runs: the images that a model has not learned from, and the page that shows its answers.

Which images, unless a split is named: `test` where there is one, else `val`, else everything. A pile without splits is
everything too, but for the model that was trained on that very pile: then it is the part that its run held out.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from vitrail.checkpoint.contents import Contents
from vitrail.data.catalog import Opened
from vitrail.data.dataset import Dataset
from vitrail.data.preprocessing import Preprocessing
from vitrail.data.sources.pile import split_of
from vitrail.evaluate.bootstrap import Interval
from vitrail.evaluate.calibration import EDGES
from vitrail.evaluate.evaluation import Evaluation
from vitrail.evaluate.metrics import Metrics
from vitrail.model.cost import cost
from vitrail.model.patches import size_text
from vitrail.report.evaluation_page import EvaluationPage
from vitrail.report.markup import number, percent
from vitrail.report.reliability import Bin
from vitrail.report.section import Figure
from vitrail.report.story import DataStory
from vitrail.runs.data import names_digest
from vitrail.runs.mistakes import evaluation_story, shown_mistakes

HELD_OUT = ("test", "val")
HELD = "the images that its run held out were taken; --split train takes the others."
VAL_FRACTION = 0.1
FIGURES = {
    "accuracy": "accuracy",
    "top5": "top-5 accuracy",
    "real": "ReaL accuracy",
    "balanced_accuracy": "balanced accuracy",
    "macro_precision": "macro precision",
    "macro_f1": "macro F1",
    "ece": "calibration error (ECE)",
    "brier": "Brier score",
    "loss": "loss (NLL)",
}
"""Figures in the order in which people look for them, and what they are called."""
NUMBERS = ("brier", "loss")
"""Figures that are no shares."""


def open_evaluation_data(
    where: str,
    *,
    split: str | None,
    provenance: Mapping[str, Any],
    root: str | None = None,
    skip_broken: str = "0",
    seed: int = 0,
) -> Dataset:
    """Open the images to evaluate on, with the classes of all the data's splits."""
    opened = Opened.of(where, skip_broken, root, None, VAL_FRACTION, seed, every_class=True)
    learned = trained_on(provenance) if opened.is_one_pile() and (opened.targets >= 0).all() else None
    note = ""
    if learned is not None:
        as_then = replace(opened, val_fraction=learned.val_fraction, seed=learned.seed)
        if names_digest(as_then.split("val")) == learned.held:
            opened, split = as_then, split or "val"
            note = f"{where} is what the model learned from; {HELD}" if split == "val" else ""
        elif Path(learned.where).resolve().name == Path(where).resolve().name:
            note = f"{where} is not what it was when the model learned from it; what it has seen may be among these."
    if note:
        opened = replace(opened, notes=(*opened.notes, note))
    if split is not None:
        return opened.split(split_of(split) or split)
    known = [] if opened.is_one_pile() else [name for name in HELD_OUT if name in opened.names()]
    return opened.split(known[0]) if known else opened.everything()


@dataclass(frozen=True, kw_only=True)
class Learned:
    """How a run cut its validation images off."""

    where: str
    val_fraction: float
    seed: int
    held: str
    """Digest of their names."""


def trained_on(provenance: Mapping[str, Any]) -> Learned | None:
    """Return what the run of a model learned from, if its file tells; older files have the digest beside `where`."""
    config = provenance.get("config")
    data = config.get("data") if isinstance(config, Mapping) else None
    if not isinstance(config, Mapping) or not isinstance(data, Mapping):
        return None
    facts = config.get("facts")
    held = facts.get("held_digest") if isinstance(facts, Mapping) else data.get("held")
    where, fraction, seed = (data.get(name) for name in ("where", "val_fraction", "split_seed"))
    seed = config.get("seed") if seed is None else seed
    if not isinstance(where, str) or not isinstance(fraction, float) or not isinstance(seed, int):
        return None
    if not isinstance(held, str) or not 0 < fraction < 1:
        return None
    return Learned(where=where, val_fraction=fraction, seed=seed, held=held)


def told_images(dataset: Dataset) -> str:
    """Say which images these are."""
    return f"the {dataset.split} split of {dataset.where}" if dataset.split else f"all of {dataset.where}"


def written(name: str, value: float) -> str:
    """Write a figure as a person reads it."""
    return f"{value:.4f}" if name in NUMBERS else percent(value, 2)


def all_figures(evaluation: Evaluation) -> dict[str, Interval]:
    """Return the figures that there are, in the order in which they are shown."""
    found = dict(evaluation.metrics.figures) if evaluation.metrics is not None else {}
    if evaluation.real is not None:
        found["real"] = evaluation.real.accuracy
    return {name: found[name] for name in FIGURES if name in found}


def evaluation_page(
    evaluation: Evaluation, contents: Contents, preprocessing: Preprocessing, *, file: str, notes: tuple[str, ...]
) -> EvaluationPage:
    """Gather what the page shows."""
    dataset, metrics, labels = evaluation.dataset, evaluation.metrics, evaluation.choice.labels
    story = None
    if metrics is not None:
        story = evaluation_story(evaluation.answers, labels, split=dataset.split or "all")
    counts = dict(zip(labels, map(int, dataset.counts), strict=True)) if metrics is not None else {}
    return EvaluationPage(
        title=f"{Path(file).name} on {told_images(dataset)}",
        figures=[
            Figure(
                label=FIGURES[name],
                value=written(name, figure.value),
                note=f"{written(name, figure.low)} to {written(name, figure.high)} (95%)",
            )
            for name, figure in all_figures(evaluation).items()
        ],
        evaluation=story,
        bins=_bins(metrics) if metrics is not None else (),
        calibration=_calibration(metrics) if metrics is not None else "",
        mistakes=shown_mistakes(dataset, evaluation.answers) if metrics is not None else (),
        data=DataStory(
            where=dataset.where,
            splits={dataset.split or "all": counts} if counts else {},
            image_size=preprocessing.image_size,
            channels=preprocessing.channels,
            skipped=len(evaluation.skipped),
        ),
        model=_facts(evaluation, contents, preprocessing, file),
        notes=notes,
    )


def _bins(metrics: Metrics) -> list[Bin]:
    found = metrics.reliability
    return [
        Bin(
            low=float(EDGES[at]),
            high=float(EDGES[at + 1]),
            images=int(found.images[at]),
            confidence=float(found.confidence[at]),
            accuracy=float(found.accuracy[at]),
        )
        for at in range(len(found.images))
    ]


def _calibration(metrics: Metrics) -> str:
    found, accuracy = metrics.reliability, metrics.figures["accuracy"].value
    mean = float((found.images[found.images > 0] @ found.confidence[found.images > 0]) / metrics.images)
    way = "too sure" if mean > accuracy else "not sure enough"
    return (
        f"Mean confidence {percent(mean)} against an accuracy of {percent(accuracy)}: {way} by "
        f"{abs(100 * (mean - accuracy)):.1f} points. Expected calibration error {percent(found.ece)}, maximum "
        f"{percent(found.mce)}, over {len(found.images)} bins of equal width."
    )


def _facts(evaluation: Evaluation, contents: Contents, preprocessing: Preprocessing, file: str) -> dict[str, str]:
    need, choice = cost(contents.config), evaluation.choice
    told = {
        "file": file,
        "parameters": number(int(need.parameters)),
        "GMACs of one image": number(need.macs / 1e9),
        "images": f"{size_text(preprocessing.image_size)}, {preprocessing.geometry}, {preprocessing.interpolation}",
        "classes": f"{choice.num_outputs:,}"
        + ("" if choice.whole else f", scored as {len(choice.labels):,}: {'; '.join(choice.notes)}"),
    }
    return told | ({"SHA-256": contents.digest} if contents.digest else {})
