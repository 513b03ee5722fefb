"""The evaluators of a run without labels: completed images, and a probe of the features."""

from typing import Any

from vitrail.base.ranks import Ranks
from vitrail.data.budget import Budget
from vitrail.runs.config import RunConfig
from vitrail.runs.data import RunData
from vitrail.runs.evaluator import RunEvaluator
from vitrail.runs.folder import RunFolder
from vitrail.runs.pictures import Pictures
from vitrail.runs.probe import FeatureProbe, probe_data
from vitrail.selfsup.objective import SelfSupervisedConfig


def unlabelled(
    config: RunConfig, data: RunData, folder: RunFolder, ranks: Ranks, allowance: Budget | None
) -> tuple[RunEvaluator[Any], ...]:
    """Return the evaluators that the objective allows; a probe of data without labels is refused."""
    objective = config.objective
    if not isinstance(objective, SelfSupervisedConfig):
        return ()
    evaluators: list[RunEvaluator[Any]] = []
    if data.evaluation is not None and objective.reconstructs:
        evaluators.append(
            Pictures(
                every=config.evaluate_every,
                images=data.evaluation,
                preprocessing=config.preprocessing,
                batch=config.batch,
                folder=folder.path / "pictures",
                ranks=ranks,
                allowance=allowance,
            )
        )
    if objective.probe != "none":
        images, examples = probe_data(objective.probe, data, data.train.where)
        evaluators.append(
            FeatureProbe(
                every=config.evaluate_every,
                images=images,
                examples=examples,
                preprocessing=config.preprocessing,
                batch=max(config.batch, 32),
                allowance=allowance,
            )
        )
    return tuple(evaluators)
