"""The largest numbers that the settings of a run may have: a larger one is a typing error that would hang or fail late.

They leave room above everything that is trained today; memory is judged by itself, from the model and the batch
(`runs/plan.py`).
"""

from collections.abc import Mapping
from typing import Any

from vitrail.base.errors import ConfigError
from vitrail.base.settings import flatten

PIXELS = 16_384
COUNT = 10**9
DECADE = 10 * 366 * 24 * 60.0
"""Minutes."""
SEED = 2**63 - 1
MOST_CHANNELS = 1_024

LARGEST: dict[str, float] = {
    "steps": COUNT - 1,  # nine digits in the names of checkpoints
    "minutes": DECADE,
    "epochs": COUNT,
    "batch": 10**7,
    "seed": SEED,
    "data.split_seed": SEED,
    "evaluate_every": COUNT,
    "log_every": COUNT,
    "patience": COUNT,
    "model.dim": 65_536,
    "model.depth": 1_024,
    "model.num_heads": 65_536,
    "model.mlp_dim": 262_144,
    "model.representation_size": 262_144,
    "model.width": 16_384,
    "model.blocks": 1_024,
    "model.backbone.width": 16_384,
    "model.backbone.blocks": 1_024,
    "model.channels": MOST_CHANNELS,
    "model.num_classes": 10**6,
    "model.image_size": PIXELS,
    "preprocessing.image_size": PIXELS,
    "objective.local_size": PIXELS,
    "objective.local_views": 64,
    "objective.prototypes": 10**6,
    "objective.hidden": 262_144,
    "objective.bottleneck": 262_144,
    "objective.outputs": 262_144,
    "augmentation.pad": PIXELS,
    "augmentation.layers": 64,
    "execution.threads": 1_024,
    "execution.workers": 1_024,
    "execution.checkpoint_every": COUNT,
    "execution.keep_checkpoints": 10**6,
    "execution.micro_batch": 10**7,
}
"""By the path of the setting; of a list, each number."""


def check_bounds(settings: Mapping[str, Any]) -> None:
    """Refuse plain settings with a number that is too large."""
    for path, value in flatten(settings).items():
        largest = LARGEST.get(path)
        if largest is None or value is None:
            continue
        numbers = value if isinstance(value, list) else [value]
        if not all(isinstance(number, int | float) for number in numbers):
            raise ConfigError(f"{_name(path)} is {_text(value)}, but must be a number.")
        if any(abs(number) > largest for number in numbers):
            raise ConfigError(f"{_name(path)} is {_text(value)}, but must be at most {largest:,.10g}.")


def _name(path: str) -> str:
    """Name a setting by its path, but for the size of images, which has two."""
    return "image_size" if path.endswith("image_size") else path


def _text(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 24 else f"{text[:20]}... ({len(text)} digits)"
