"""Small runs of DINO and MoCo v3 on made-up images."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.training.following import following_config, following_run
from vitrail.base.ranks import Ranks
from vitrail.data.augment.settings import Augmentation
from vitrail.runs.config import RunConfig
from vitrail.runs.execution import Execution
from vitrail.runs.train import Run
from vitrail.selfsup.dino import DinoConfig
from vitrail.selfsup.moco import MocoConfig
from vitrail.training.learner import ObjectiveConfig
from vitrail.training.optimizers import OptimizerConfig
from vitrail.training.schedules import Schedule

VIEW = Augmentation(area=(0.4, 1.0), brightness=0.4, hue=0.1, jitter=0.8, grey=0.2, blur=0.3, solarize=0.2)
OBJECTIVES: dict[str, ObjectiveConfig] = {
    "dino": DinoConfig(
        second=VIEW, local=VIEW, local_views=3, local_size=(4, 4), prototypes=24, hidden=20, bottleneck=8, momentum=0.9
    ),
    "moco": MocoConfig(second=VIEW, hidden=20, outputs=8, momentum=0.9),
}


def views_config(kind: str, *, shard: bool = False, **changes: Any) -> RunConfig:
    """A run without chance inside a step, so that ranks change nothing but rounding; SGD leaves that small."""
    config = following_config(execution=Execution(checkpoint_every=3, shard=shard, device="cpu"))
    return replace(
        config,
        **{
            "objective": OBJECTIVES[kind],
            "augmentation": VIEW,
            "optimizer": OptimizerConfig(name="sgd", weight_decay=0.04, weight_decay_end=0.4, clip_norm=3.0),
            "schedule": Schedule(peak=0.01, warmup_steps=2),
        }
        | changes,
    )


def views_run(folder: Path, config: RunConfig, *, ranks: Ranks | None = None) -> Run:
    """A run on images without labels."""
    return following_run(folder, config, ranks=ranks)
