"""The end of a run: the last measurements, the model file, the figures, the page."""

import math
from dataclasses import replace
from typing import Any

from torch import Tensor

from vitrail.base.journal import read_measurements
from vitrail.base.settings import to_dict
from vitrail.checkpoint.files import load
from vitrail.data.dataset import Dataset
from vitrail.report.report import write_report
from vitrail.report.section import Section
from vitrail.report.story import DataStory, RunStory
from vitrail.runs.cost import cost_rows, costs
from vitrail.runs.evaluator import RunEvaluator
from vitrail.runs.folder import write_json
from vitrail.runs.model_file import write_model
from vitrail.runs.result import Result, Weights
from vitrail.runs.skipped import skipped_names
from vitrail.runs.train import Run
from vitrail.training.endings import diverged
from vitrail.training.loop import Loop
from vitrail.training.state import whole

Measured = list[tuple[RunEvaluator[Any], Any]]
"""Evaluators with their outcomes for the weights that are saved."""


def finish(run: Run, loop: Loop) -> Result:
    """Evaluate the weights that are saved, write them, and return the result; every rank takes part."""
    chosen, weights, measured = _measured(run, loop)
    progress = loop.state.progress
    scopes = [scope for evaluator, outcome in measured if (scope := evaluator.scope(outcome)) is not None]
    result = Result(
        weights=chosen,
        steps=progress.step,
        epochs=progress.step * run.config.batch / max(run.config.facts.images, 1),
        split=scopes[0].split if scopes else None,
        images=scopes[0].images if scopes else None,
        figures=_figures(measured),
        cost=costs(run, progress.step),
        bad_steps=tuple(progress.bad_steps),
        skipped=tuple(skipped_names(run.folder.path)),
        run=run.config.identity,
    )
    _check_finite(weights, result)
    if run.ranks.first:
        run.folder.result.unlink(missing_ok=True)  # figures of a model that is replaced now
        provenance = result.as_dict()
        cost = provenance.pop("cost")
        digest = write_model(run.config, weights, run.folder.model, {"metrics": provenance, "cost": cost})
        result = replace(result, digest=digest)
        if run.report:
            sections = [section for evaluator, outcome in measured for section in evaluator.sections(outcome)]
            write_report(story(run, sections, result), run.folder.report)
        write_json(run.folder.result, to_dict(result))
        run.folder.best.unlink(missing_ok=True)
    run.ranks.wait()
    return result


def _check_finite(weights: dict[str, Tensor], result: Result) -> None:
    """Refuse to save a model that has learned nothing which can be used."""
    spoilt = [name for name, tensor in weights.items() if not bool(tensor.isfinite().all())]
    spoilt += [name for name, value in result.figures.items() if not math.isfinite(value)]
    if spoilt:
        raise diverged(f"{spoilt[0]} is not finite after step {result.steps}", step=result.steps)


def _figures(measured: Measured) -> dict[str, float]:
    """Return the main evaluator's figures by their names, and those of others with the evaluator's name in front."""
    figures: dict[str, float] = {}
    for evaluator, outcome in measured:
        own = evaluator.scope(outcome) is not None
        figures |= evaluator.figures(outcome) if own else evaluator.journaled(outcome)
    return figures


def _measured(run: Run, loop: Loop) -> tuple[Weights, dict[str, Tensor], Measured]:
    """Return which weights are saved, the weights, and every evaluator's figures of them."""
    if run.config.patience is not None and run.folder.best.is_file():
        best = load(run.folder.best, device=run.ranks.device)
        return "best", best.state_dict(), [(each, each.evaluate(best)) for each in run.evaluators()]
    with loop.state.saved_weights():
        measured = [(each, loop.outcome(each)) for each in run.evaluators()]
        weights = {name: whole(tensor).clone() for name, tensor in loop.state.learner.saved.state_dict().items()}
    return "last" if loop.state.average is None else "averaged", weights, measured


def story(run: Run, sections: list[Section], result: Result) -> RunStory:
    """Gather the content of the page."""
    splits = [split for split in (run.data.train, run.data.evaluation) if split is not None]
    return RunStory(
        title=f"{run.config.data.where}: {run.folder.path.name}",
        metrics=[_plain(row) for row in read_measurements(run.folder.path / "metrics.jsonl")],
        split=None if run.data.evaluation is None else run.data.evaluation.split or "held-out",
        sections=(*sections, *run.sections),
        data=DataStory(
            where=run.config.data.where,
            splits={split.split or "train": _counts(split) for split in splits},
            image_size=run.config.preprocessing.image_size,
            channels=run.config.model.channels,
            skipped=len(result.skipped),
        ),
        cost=cost_rows(result.cost),
        settings=to_dict(run.config),
        notes=list(run.data.notes),
    )


def _counts(split: Dataset) -> dict[str, int]:
    """Count the images of each class, and those without one."""
    counts = dict(zip(split.labels, map(int, split.counts), strict=True))
    unlabelled = len(split) - sum(counts.values())
    return counts | ({"no label": unlabelled} if unlabelled else {})


def _plain(row: dict[str, Any]) -> dict[str, float]:
    return {name: float(value) for name, value in row.items()}
