"""Over which classes a model is scored: those of the data, found by name among the model's.

| data and flags                             | the answer is the highest score among                                  |
|--------------------------------------------|------------------------------------------------------------------------|
| all classes of the model                   | all of them                                                            |
| some of its classes                        | those                                                                  |
| a class map                                | the mapped classes that the data has; a class scores as high as the    |
|                                            | highest of its model classes, and images of other classes are left out;|
|                                            | those with the same model classes are one, called `dog / Dog`          |
| some classes or a map, and `all_classes`   | all outputs of the model: an answer outside of the data is wrong       |

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
    """What a person should know about the choice."""

    @property
    def whole(self) -> bool:
        """Whether the scored classes are the model's own, all of them and in order."""
        every = np.arange(self.num_outputs)
        return np.array_equal(self.outputs, every) and np.array_equal(self.classes, every)

    def targets(self, given: Int[np.ndarray, "image"]) -> Int[np.ndarray, "image"]:
        """Turn classes of the data into scored classes; -1 stays -1."""
        return np.append(self.places, UNLABELLED)[given]


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
) -> Choice:
    """Find the classes of the data among those of the model, by name or by a map."""
    if not (dataset.targets >= 0).any():
        raise InputError(
            f"{dataset.where} has no image with a class to compare answers with; put each class into a folder of its "
            "own, or give a CSV with path and label."
        )
    if class_map is not None:
        return _mapped(dataset, labels, num_classes, class_map, all_classes)
    found, note = _found(dataset, labels, num_classes)
    whole = every_class(labels, num_classes, found, note)
    present = np.unique(found[found >= 0])
    if all_classes or len(present) == num_classes:
        return whole
    names = whole.labels
    _refuse_one(dataset, len(present), names[present[0]])
    places = np.where(found >= 0, np.searchsorted(present, found), UNLABELLED)
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


def _found(
    dataset: Dataset, labels: Sequence[str] | None, num_classes: int
) -> tuple[Int[np.ndarray, "data_class"], tuple[str, ...]]:
    """Return the model's class of each class of the data, -1 where a class without images has none."""
    given, counts = dataset.labels, dataset.counts
    if labels is not None and tuple(labels) == given:  # whatever the names are: ImageNet has two classes called crane
        return np.arange(num_classes), ()
    matched: list[int | None] = [None] * len(given)
    if labels is not None:
        matched = Labels(labels).match(given, where=dataset.where)
    if not any(at is not None for at in matched):
        if are_numbers(given) and len(given) <= num_classes:
            return np.arange(len(given)), (
                f"the classes of {dataset.where} are whole numbers and were taken as places in the model's list.",
            )
        if _is_imagenet(given, labels, num_classes):
            return np.arange(num_classes), (
                "the classes are ImageNet-1k's WordNet ids, which were taken in their usual order: sorted.",
            )
    if labels is None:
        raise InputError(
            f"the model has no class names to compare with those of {dataset.where} ({few(given)}); give them with "
            "`labels`, one name a line in the order of the model's outputs."
        )
    lacking = [name for name, at, count in zip(given, matched, counts, strict=True) if at is None and count]
    if lacking:
        raise InputError(
            f"{dataset.where} has {len(lacking)} classes that the model lacks: {few(lacking)}. The model has "
            f"{num_classes}: {few(labels)}. Rename the data's, or say with `class_map` which of the model's they "
            "are; `labels` gives the model other names."
        )
    return np.array([UNLABELLED if at is None else at for at in matched], np.int64), ()


def _is_imagenet(given: Sequence[str], labels: Sequence[str] | None, num_classes: int) -> bool:
    """Tell the full list of ImageNet-1k's ids, for a model whose own names, if it has any, are ImageNet-1k's words."""
    if not len(given) == num_classes == IMAGENET or (given[0], given[-1]) != _ENDS[0]:
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
    used = list(scored)
    same = [listed for listed in scored.values() if len(listed) > 1]
    notes += [f"{' and '.join(listed)} are the same in the model, and one class here." for listed in same]
    outputs = np.array([output for group in used for output in group], np.int64)
    classes = np.repeat(np.arange(len(used)), [len(group) for group in used])
    names = tuple(" / ".join(listed) for listed in scored.values())
    if all_classes:
        rest = np.setdiff1d(np.arange(num_classes), outputs)
        outputs, classes = np.append(outputs, rest), np.append(classes, len(used) + np.arange(len(rest)))
        names += tuple(labels[at] if labels else str(at) for at in rest)
        notes.append(f"the other {len(rest):,} classes of the model stay among the answers, where they are wrong.")
    else:
        _refuse_one(dataset, len(used), names[0])
        notes.append(f"scored over the {len(used):,} classes that the map and {dataset.where} share.")
    order = {group: at for at, group in enumerate(used)}
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
    given: Sequence[str], groups: Sequence[Sequence[int] | None], labels: Sequence[str] | None
) -> dict[tuple[int, ...], list[str]]:
    """Return the classes of the data by their outputs; what shares all of them is one, and nothing may share some."""
    made: dict[tuple[int, ...], list[str]] = {}
    owners: dict[int, tuple[int, ...]] = {}
    for name, group in zip(given, groups, strict=True):
        if not group:
            continue
        key = _key(group)
        made.setdefault(key, []).append(name)
        for output in key:
            other = owners.setdefault(output, key)
            if other != key:
                raise InputError(
                    f"the class map gives {labels[output] if labels else output} of the model to {made[other][0]} and "
                    f"to {name}, of which one has other classes too, so that no answer tells them apart; give it to "
                    "one of them, or the same list to both."
                )
    return made


def _refuse_one(dataset: Dataset, count: int, name: str) -> None:
    if count == 1:
        raise InputError(
            f"{dataset.where} has one class of the model only, {name}, and among one every answer is right; "
            "`all_classes` keeps the model's other classes among the answers."
        )
