"""A study: one question, a variant of a run for each answer, and what the paper found.

    factors -> variants; variants x seeds -> cells; a cell is a run, or a chain of runs, and its figures

A study of one's own is a value of this kind, or a TOML file (`study_file.py`).
"""

import itertools
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from vitrail.base.errors import ConfigError
from vitrail.base.settings import to_dict
from vitrail.model.family import ModelConfig
from vitrail.runs.draft import Facts

Value = str | int | float
OWN = ("seed", "steps", "minutes", "data.where", "data.others", "data.root", "data.split_seed")
"""Settings of its runs that a study decides itself."""
_STRANGE = re.compile(r"[^A-Za-z0-9.]+")
Task = Literal["train", "enlarge", "transfer", "pretrain", "speed"]
"""What a cell does: train a classifier; train on small images and fine-tune on large ones; train on one data set and
fine-tune on another; pre-train without labels and fine-tune; or time a forward pass."""
Measure = Literal["accuracy", "fewshot", "finetuned", "images_per_second", "largest_batch"]
"""Figures of a cell: accuracy at its end, on few images of each class, and after fine-tuning on all of the last data
set; images/s of a forward pass, and the largest batch whose training fits into memory."""


@dataclass(frozen=True, kw_only=True)
class Variant:
    """One setting of the factors."""

    name: str
    line: str = ""
    """The curve of the figure that it is a point of; without one it is a point of every curve."""
    x: float | None = None
    """Its place on the figure's axis; None counts variants, and "compute" studies take the compute of each."""
    model: ModelConfig | None = None
    """The model; None is that of the rule."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Further settings of the run, by path."""
    fraction: float | None = None
    """The share of the training images that it sees."""
    source: int | None = None
    """Of "transfer": the number of the data set that it is first trained on; None for random weights."""
    target: int = 0
    """The number of the data set that it is measured on."""
    image_sizes: tuple[int, ...] = ()
    """Of "enlarge": the side of the images of each run."""
    first: float = 0.5
    """Of a chain: the share of the steps in its first run; the second has half of them."""


@dataclass(frozen=True, kw_only=True)
class Claim:
    """That one variant is better than another, tested over the seeds that both have."""

    better: str
    worse: str


@dataclass(frozen=True, kw_only=True)
class Point:
    """A result of the paper, for the same figure."""

    line: str
    name: str
    value: float
    x: float | None = None


@dataclass(frozen=True, kw_only=True)
class Study:
    """A question, its variants, and the paper's answer."""

    name: str
    question: str
    paper: str = ""
    """What the paper found, in a sentence."""
    source: str = ""
    """Where in the paper."""
    task: Task = "train"
    measures: tuple[Measure, ...] = ("accuracy",)
    """The figures of a cell; the first decides claims and figure."""
    variants: Callable[[Facts, Sequence[str]], Sequence[Variant]]
    """Makes the variants from the facts of the first data set, and the names of all data sets."""
    claims: tuple[Claim, ...] | Callable[[Sequence[Variant]], tuple[Claim, ...]] = ()
    """What is tested; a function of the variants where their names depend on the data."""
    x_label: str = ""
    """The axis of the figure; empty where variants only have names."""
    compute_axis: bool = False
    """Whether the axis is the compute of each cell, on a logarithmic scale."""
    fit: bool = False
    """Whether a power law of the compute is fitted to the error of each line."""
    points: tuple[Point, ...] = ()
    paper_label: str = ""
    """What the paper's points measure."""
    data_sets: tuple[int, int] = (1, 1)
    """How many data sets it takes, at least and at most."""

    @property
    def chained(self) -> bool:
        """Whether a cell is two runs, which share the steps."""
        return self.task in ("enlarge", "transfer", "pretrain") or "finetuned" in self.measures

    def claims_about(self, variants: Sequence[Variant]) -> tuple[Claim, ...]:
        """Return what is tested of these variants."""
        return self.claims(variants) if callable(self.claims) else self.claims

    def shares(self, variant: Variant) -> tuple[float, ...]:
        """Return the share of the plan's steps that each run of a variant has."""
        unlabelled = variant.model is not None and not variant.model.num_classes
        single = {"transfer": variant.source is None, "pretrain": not unlabelled}.get(self.task, not self.chained)
        return (1.0,) if single else (variant.first, 0.5)


def crossed(lines: Mapping[str, ModelConfig], points: Mapping[str, Mapping[str, Any]]) -> list[Variant]:
    """Return a variant for each line and each of its points: a line is a model, a point the other fields."""
    return [
        Variant(name=f"{line}, {point}", line=line, model=model, **fields)
        for line, model in lines.items()
        for point, fields in points.items()
    ]


def product(factors: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> list[Variant]:
    """Return a variant for each combination: of each factor one value, which is a name and settings by path."""
    combinations = itertools.product(*(values.items() for values in factors.values()))
    return [_combined(combination) for combination in combinations]


def one_at_a_time(factors: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> list[Variant]:
    """Return the first values of all factors, and a variant for each further value of one of them."""
    first = [next(iter(values.items())) for values in factors.values()]
    variants = [Variant(name="base", settings=_merged(settings for _, settings in first))]
    for place, (factor, values) in enumerate(factors.items()):
        for name, settings in list(values.items())[1:]:
            others = [settings_of for at, (_, settings_of) in enumerate(first) if at != place]
            variants.append(Variant(name=name, line=factor, settings=_merged([*others, settings])))
    return variants


def check_variants(study: Study, variants: Sequence[Variant]) -> None:
    """Refuse variants that cannot be told apart, and claims about others."""
    names = [variant.name for variant in variants]
    if not names or len(set(names)) < len(names):
        raise ConfigError(f"the study {study.name} has the variants {', '.join(names)}; give each a name of its own.")
    folders: dict[str, str] = {}
    for name in names:
        if (other := folders.setdefault(folder_name(name).casefold(), name)) != name:
            raise ConfigError(
                f"the study {study.name} has the variants {other!r} and {name!r}, whose folders would have the same "
                "name; give one of them another."
            )
    for variant in variants:
        if own := sorted(path for path in variant.settings if path in OWN):
            raise ConfigError(
                f"the variant {variant.name!r} sets {own[0]}, which a study decides for all of its runs; leave it out."
            )
        try:
            json.dumps(to_dict(variant), allow_nan=False)
        except (TypeError, ValueError) as error:
            raise ConfigError(
                f"the variant {variant.name!r} has a setting that is not a plain, finite value: {error}."
            ) from None
    for claim in study.claims_about(variants):
        for name in (claim.better, claim.worse):
            if name not in names:
                raise ConfigError(f"the study {study.name} makes a claim about {name!r}, which is not a variant.")


def folder_name(variant: str) -> str:
    """Return a variant's name as that of a folder: without spaces and signs."""
    return _STRANGE.sub("-", variant)


def _combined(combination: Iterable[tuple[str, Mapping[str, Any]]]) -> Variant:
    parts = list(combination)
    names = [name for name, _ in parts]
    line = names[0] if len(names) > 1 else ""
    return Variant(name=", ".join(names), line=line, settings=_merged(settings for _, settings in parts))


def _merged(parts: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    merged: dict[str, Any] = {}
    for part in parts:
        merged |= part
    return merged
