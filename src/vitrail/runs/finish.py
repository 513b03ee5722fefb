"""The end of a run: the last measurement, the model file, the figures, the page."""

from contextlib import nullcontext
from typing import Any

from vitrail.base.journal import read_rows
from vitrail.base.settings import to_dict
from vitrail.checkpoint.files import load
from vitrail.evaluation.classify import Answers
from vitrail.report.report import DataStory, Mistake, RunStory, write_report
from vitrail.runs.cost import costs, told_costs
from vitrail.runs.folder import write_json
from vitrail.runs.mistakes import evaluation_story, shown_mistakes
from vitrail.runs.skipped import skipped_names
from vitrail.runs.train import Run
from vitrail.train.loop import Loop
from vitrail.train.state import whole


def finish(run: Run, loop: Loop) -> dict[str, Any]:
    """Measure the weights that are handed on, write them, and tell what the run was; every rank takes part."""
    state, config = loop.state, run.config
    if config.patience is not None and run.folder.best.is_file() and run.data.held is not None:
        chosen, best = "best", load(run.folder.best, device=run.ranks.device)
        answers = run.answers(best)
        weights = best.state_dict()
    else:
        chosen = "last" if state.average is None else "averaged"
        with nullcontext() if state.average is None else state.average.applied():
            state.model.eval()
            answers = run.latest.pop() if run.latest else run.answers(state.model)
            weights = {name: whole(tensor).clone() for name, tensor in state.model.state_dict().items()}
            state.model.train()
    steps = state.progress.step
    epochs = steps * config.batch / max(config.data.images, 1)
    result: dict[str, Any] = {"weights": chosen, "steps": steps, "epochs": epochs}
    if answers is not None and run.data.held is not None:
        result |= {"split": run.data.held.split, "images": int(answers.answered.sum())}
        result |= {"accuracy": answers.accuracy, "loss": answers.loss}
        result |= {"top5": answers.top5} if run.data.classes > 5 else {}
    result["cost"] = costs(run, steps)
    result["bad_steps"] = state.progress.bad_steps
    result["skipped"] = skipped_names(run.folder.path)
    if run.ranks.first:
        metrics = {name: value for name, value in result.items() if name != "cost"}
        result["digest"] = run.write_model(weights, run.folder.model, {"metrics": metrics, "cost": result["cost"]})
        write_report(story(run, answers, result), run.folder.report)
        write_json(run.folder.result, result)
        run.folder.best.unlink(missing_ok=True)
    run.ranks.wait()
    return result


def story(run: Run, answers: Answers | None, result: dict[str, Any]) -> RunStory:
    """Gather what the page shows."""
    held = run.data.held
    evaluation = None
    mistakes: list[Mistake] = []
    if answers is not None and held is not None:
        evaluation = evaluation_story(answers, held.labels, split=held.split or "held-out", top5=result.get("top5"))
        mistakes = shown_mistakes(held, answers)
    splits = {split.split or "train": split for split in (run.data.train, held) if split is not None}
    return RunStory(
        title=f"{run.config.data.where}: {run.folder.path.name}",
        metrics=[_plain(row) for row in read_rows(run.folder.path / "metrics.jsonl")],
        evaluation=evaluation,
        mistakes=mistakes,
        data=DataStory(
            where=run.config.data.where,
            splits={
                name: dict(zip(split.labels, map(int, split.counts), strict=True)) for name, split in splits.items()
            },
            image_size=run.config.preprocessing.image_size,
            channels=run.config.model.channels,
            skipped=len(result["skipped"]),
        ),
        cost=told_costs(result["cost"]),
        settings=to_dict(run.config),
        notes=list(run.data.notes),
        extras=run.extras,
    )


def _plain(row: dict[str, Any]) -> dict[str, float]:
    return {name: float(value) for name, value in row.items()}
