"""A study of one's own: a TOML file of some thirty lines with factors, recipe and measure; nothing in it is executed.

name = "smoothing"
question = "Does label smoothing help, and does it replace mixup?"
[recipe]                     # settings of every run, by path
"optimizer.name" = "adam"
[factors.smoothing]          # values of a factor: a name, and settings by path
none = {"objective.label_smoothing" = 0.0}
some = {"objective.label_smoothing" = 0.1}
[[claims]]
better = "some"
worse = "none"
"""

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from vitrail.base.errors import ConfigError, InputError
from vitrail.base.reading import read_text
from vitrail.base.settings import from_dict
from vitrail.studies.study import Claim, Measure, Study, one_at_a_time, product

MOST_VARIANTS = 1000
"""Variants of a study; each is at least one run."""


@dataclass(frozen=True, kw_only=True)
class StudyFile:
    """The settings of such a file."""

    name: str
    question: str
    measures: tuple[Measure, ...] = ("accuracy",)
    """Figures of a run: accuracy, fewshot, finetuned, images_per_second, largest_batch."""
    combine: Literal["all", "one at a time"] = "all"
    """Every combination of the factors, or one value changed at a time from the first ones."""
    recipe: Mapping[str, Any] = field(default_factory=dict)
    factors: Mapping[str, Mapping[str, Any]]
    claims: tuple[Claim, ...] = ()


def read_study(path: Path) -> Study:
    """Read a study from a TOML file, or refuse what is not one."""
    try:
        settings = tomllib.loads(read_text(path))
    except (ValueError, RecursionError) as error:  # a number of 5000 digits is the first of these
        raise InputError(f"{path} is not a study in TOML: {str(error).rstrip('.')}.") from None
    file = from_dict(StudyFile, settings, where=f"the settings in {path}")
    for factor, values in file.factors.items():
        tables = all(isinstance(value, dict) for value in values.values())
        if not values or not tables:
            raise ConfigError(f"the factor {factor!r} of {path} must have values, each a table of settings by path.")
    if not file.factors:
        raise ConfigError(f"{path} has no factors; a study varies at least one.")
    sizes = list(map(len, file.factors.values()))
    combine, count = (product, math.prod(sizes)) if file.combine == "all" else (one_at_a_time, sum(sizes))
    if count > MOST_VARIANTS:
        raise ConfigError(
            f"the factors of {path} make {count:,} variants, more than the {MOST_VARIANTS:,} that a study may have; "
            'leave some out, or set combine = "one at a time".'
        )
    variants = [replace(one, settings={**file.recipe, **one.settings}) for one in combine(file.factors)]
    return Study(
        name=file.name,
        question=file.question,
        measures=file.measures,
        variants=lambda *_: variants,
        claims=file.claims,
    )
