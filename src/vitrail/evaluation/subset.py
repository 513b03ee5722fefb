"""The classes over which a model is scored: those of the data, matched by name to the model's.

| data and settings                          | the answer is the highest score among                                  |
|--------------------------------------------|------------------------------------------------------------------------|
| all classes of the model                   | all of them                                                            |
| some of its classes                        | those                                                                  |
| a class map                                | the mapped classes that the data has; a class scores as high as the    |
|                                            | highest of its model classes, and images of other classes are left out;|
|                                            | those with the same model classes are one, called `dog / Dog`          |
| some classes or a map, and `all_classes`   | all outputs of the model: an answer outside the data's classes is wrong|

Probabilities are the softmax of these scores.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from vitrail.base.errors import InputError
from vitrail.base.shapes import Logits, PixelBatch
from vitrail.data.classes import few
from vitrail.data.dataset import UNLABELLED, Dataset
from vitrail.evaluation.class_map import ClassMap, resolve
from vitrail.evaluation.names import Labels, are_numbers, spelled
from vitrail.runtime.engine import Engine

IMAGENET = 1000
_ENDS = (("n01440764", "n15075141"), ("tench", "toilet"))
"""ImageNet-1k's first and last class, as WordNet ids and as words that their labels have."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Choice:
    """The classes that are scored, and how outputs of the model become their scores."""

    labels: tuple[str, ...]
    """Names of the scored classes."""
    outputs: Int[np.ndarray, "output"]
    """The outputs of the model that take part."""
    classes: Int[np.ndarray, "output"]
    """The scored class that each of them belongs to."""
    places: Int[np.ndarray, "data_class"]
    """The scored class of each class of the data; -1 where it is left out."""
    num_outputs: int
    """Outputs of the model in all."""
    notes: tuple[str, ...] = ()
    """What the user should know about the choice."""

    @property
    def whole(self) -> bool:
        """Whether the scored classes are the model's own, all of them and in order."""
        every = np.arange(self.num_outputs)
        return np.array_equal(self.outputs, every) and np.array_equal(self.classes, every)

    def targets(self, classes: Int[np.ndarray, "image"]) -> Int[np.ndarray, "image"]:
        """Turn classes of the data into scored classes; -1 stays -1."""
        return np.append(self.places, UNLABELLED)[classes]


@dataclass(frozen=True, eq=False)
class Scored:
    """A network that answers for the scored classes only."""

    engine: Engine
    choice: Choice

    def __call__(self, pixels: PixelBatch) -> Logits:
        """Return the score of each scored class."""
        return class_scores(self.engine.logits(pixels), self.choice)


def class_scores(logits: Float[Tensor, "batch output"], choice: Choice) -> Float[Tensor, "batch scored"]:
    """Give each scored class the highest score among its outputs."""
    if choice.whole:
        return logits
    chosen = logits[:, torch.as_tensor(choice.outputs, device=logits.device)]
    classes = torch.as_tensor(choice.classes, device=logits.device).expand_as(chosen)
    lowest = logits.new_full((len(logits), len(choice.labels)), -torch.inf)
    return lowest.scatter_reduce(1, classes, chosen, "amax")


def choose(
    dataset: Dataset,
    labels: Sequence[str] | None,
    num_classes: int,
    *,
    class_map: ClassMap | None = None,
    all_classes: bool = False,
    mappable: bool = True,
) -> Choice:
    """Find the classes of the data among those of the model, by name or by a map, where the caller takes one."""
    if not (dataset.targets >= 0).any():
        raise InputError(
            f"{dataset.where} has no image with a class to compare answers with; put each class into a folder of its "
            "own, or give a CSV with path and label."
        )
    if class_map is not None:
        return _mapped(dataset, labels, num_classes, class_map, all_classes)
    outputs, note = _matched_outputs(dataset, labels, num_classes, mappable=mappable)
    whole = every_class(labels, num_classes, outputs, note)
    present = np.unique(outputs[outputs >= 0])
    if all_classes or len(present) == num_classes:
        return whole
    names = whole.labels
    _refuse_one(dataset, len(present), names[present[0]])
    places = np.where(outputs >= 0, np.searchsorted(present, outputs), UNLABELLED)
    scored = (
        f"scored over {len(present):,} of {num_classes:,} classes, those that {dataset.where} has; `all_classes` keeps "
        "the others among the answers."
    )
    return Choice(
        labels=tuple(names[at] for at in present),
        outputs=present,
        classes=np.arange(len(present)),
        places=places,
        num_outputs=num_classes,
        notes=(*note, scored),
    )


def every_class(
    labels: Sequence[str] | None,
    num_classes: int,
    places: Int[np.ndarray, "data_class"],
    notes: tuple[str, ...] = (),
) -> Choice:
    """Score all classes of the model; without names they are called by their numbers."""
    every = np.arange(num_classes)
    names = tuple(labels) if labels is not None else tuple(map(str, range(num_classes)))
    return Choice(labels=names, outputs=every, classes=every, places=places, num_outputs=num_classes, notes=notes)


def _matched_outputs(
    dataset: Dataset, labels: Sequence[str] | None, num_classes: int, *, mappable: bool
) -> tuple[Int[np.ndarray, "data_class"], tuple[str, ...]]:
    """Return the model's class of each class of the data, -1 where a class without images has none."""
    names, counts = dataset.labels, dataset.counts
    if labels is not None and tuple(labels) == names:  # even with repeated names: ImageNet has two classes called crane
        return np.arange(num_classes), ()
    matches: list[int | None] = [None] * len(names)
    if labels is not None:
        matches = Labels(labels).match(names, where=dataset.where)
    if not any(at is not None for at in matches):
        if are_numbers(names) and len(names) <= num_classes:
            return np.arange(len(names)), (
                f"the classes of {dataset.where} are whole numbers and were taken as places in the model's list.",
            )
        if _is_imagenet(names, labels, num_classes):
            return np.arange(num_classes), (
                "the classes are ImageNet-1k's WordNet ids, which were taken in their usual order: sorted.",
            )
    if labels is None:
        raise InputError(
            f"the model has no class names to compare with those of {dataset.where} ({few(names)}); give them with "
            "`labels`, one name a line in the order of the model's outputs."
        )
    unknown = [name for name, at, count in zip(names, matches, counts, strict=True) if at is None and count]
    if unknown:
        raise InputError(
            f"{dataset.where} has {len(unknown)} classes that the model lacks: {few(unknown)}. The model has "
            f"{num_classes}: {few(labels)}. Rename the data's classes, {'map them with `class_map`, ' * mappable}or "
            "give the model's names with `labels`."
        )
    return np.array([UNLABELLED if at is None else at for at in matches], np.int64), ()


def _is_imagenet(names: Sequence[str], labels: Sequence[str] | None, num_classes: int) -> bool:
    """Return whether names are ImageNet-1k's full list of ids, and the model's own names, if any, its words."""
    if not len(names) == num_classes == IMAGENET or (names[0], names[-1]) != _ENDS[0]:
        return False
    return labels is None or all(word in spelled(labels[at]) for word, at in zip(_ENDS[1], (0, -1), strict=True))


def _mapped(
    dataset: Dataset, labels: Sequence[str] | None, num_classes: int, class_map: ClassMap, all_classes: bool
) -> Choice:
    resolved = resolve(class_map, labels, num_classes, where="the class map")
    keys = {spelled(name): outputs for name, outputs in resolved.items()}
    groups = [resolved.get(name) or keys.get(spelled(name)) for name in dataset.labels]
    if not any(groups):
        raise InputError(
            f"the class map names none of the classes of {dataset.where}: it has {few(list(class_map))}, and the data "
            f"{few(dataset.labels)}."
        )
    left_out = [name for name, group in zip(dataset.labels, groups, strict=True) if not group]
    images = int(sum(count for count, group in zip(dataset.counts, groups, strict=True) if not group))
    notes = [f"{images:,} images of {len(left_out):,} classes are left out: {few(left_out)}."] if images else []
    scored = _merged(dataset.labels, groups, labels)
    merged_groups = list(scored)
    same = [members for members in scored.values() if len(members) > 1]
    notes += [f"{' and '.join(members)} are the same in the model, and one class here." for members in same]
    outputs = np.array([output for group in merged_groups for output in group], np.int64)
    classes = np.repeat(np.arange(len(merged_groups)), [len(group) for group in merged_groups])
    names = tuple(" / ".join(members) for members in scored.values())
    if all_classes:
        rest = np.setdiff1d(np.arange(num_classes), outputs)
        outputs, classes = np.append(outputs, rest), np.append(classes, len(merged_groups) + np.arange(len(rest)))
        names += tuple(labels[at] if labels else str(at) for at in rest)
        notes.append(f"the other {len(rest):,} classes of the model stay among the answers, where they are wrong.")
    else:
        _refuse_one(dataset, len(merged_groups), names[0])
        notes.append(f"scored over the {len(merged_groups):,} classes that the map and {dataset.where} share.")
    order = {group: at for at, group in enumerate(merged_groups)}
    return Choice(
        labels=names,
        outputs=outputs,
        classes=classes,
        places=np.array([order[_key(group)] if group else UNLABELLED for group in groups], np.int64),
        num_outputs=num_classes,
        notes=tuple(notes),
    )


def _key(group: Sequence[int]) -> tuple[int, ...]:
    return tuple(sorted(group))


def _merged(
    names: Sequence[str], groups: Sequence[Sequence[int] | None], labels: Sequence[str] | None
) -> dict[tuple[int, ...], list[str]]:
    """Group the classes of the data by their outputs; two groups may not share an output."""
    merged: dict[tuple[int, ...], list[str]] = {}
    owners: dict[int, tuple[int, ...]] = {}
    for name, group in zip(names, groups, strict=True):
        if not group:
            continue
        key = _key(group)
        merged.setdefault(key, []).append(name)
        for output in key:
            other = owners.setdefault(output, key)
            if other != key:
                shared = labels[output] if labels else output
                raise InputError(
                    f"the class map gives {shared} of the model to {merged[other][0]} and to {name}, of which one has "
                    "other classes too, and no answer could separate them; give it to one of them, or the same list "
                    "to both."
                )
    return merged


def _refuse_one(dataset: Dataset, count: int, name: str) -> None:
    if count == 1:
        raise InputError(
            f"{dataset.where} has only one class of the model, {name}, for which every answer is right; "
            "`all_classes` keeps the model's other classes among the answers."
        )
