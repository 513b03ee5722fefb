"""The data of a run: a split to learn from, a split to evaluate on, and the facts that defaults follow from."""

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from vitrail.base.errors import ImageError, InputError
from vitrail.data.catalog import open_splits
from vitrail.data.dataset import Dataset
from vitrail.data.joined import join_datasets
from vitrail.data.pixels.decode import probe
from vitrail.data.sources.patterns import is_pattern
from vitrail.data.subsets import fraction_of, stratified_split
from vitrail.runs.config import RunConfig
from vitrail.runs.data_config import DataConfig, DataFacts

PROBED = 64
"""Images that are measured to estimate the usual size."""


@dataclass(frozen=True, kw_only=True)
class RunData:
    """A training split and, where there is one, a split to evaluate on."""

    train: Dataset
    evaluation: Dataset | None
    notes: tuple[str, ...] = ()

    @property
    def classes(self) -> int:
        """Count the classes."""
        return len(self.train.labels)

    @property
    def held_out(self) -> int:
        """Count the images to evaluate on."""
        return 0 if self.evaluation is None else len(self.evaluation)

    @cached_property
    def facts(self) -> DataFacts:
        """What a run stores of its data; the digests of the names are computed once."""
        return DataFacts(
            labels=self.train.labels,
            images=len(self.train),
            train_digest=names_digest(self.train),
            held_digest=names_digest(self.evaluation),
            files_digest=files_digest(*(split for split in (self.train, self.evaluation) if split is not None)),
        )


def open_run_data(config: DataConfig, *, seed: int, needs_labels: bool = True) -> RunData:
    """Open the splits and refuse, before the first step, data that cannot be trained on.

    Without `needs_labels`, images of both splits may be unlabelled.
    """
    seed = seed if config.split_seed is None else config.split_seed
    if needs_labels and config.others:
        raise InputError(f"classes are learned from one place, not from {len(config.others) + 1}; give one as `data`.")
    splits = _splits([_opened(where, config, seed, needs_labels) for where in (config.where, *config.others)])
    train = splits["train"]
    if needs_labels:
        _check_classes(train, config.where)
    if config.fraction < 1:
        train = fraction_of(train, config.fraction, seed)
    notes = dict.fromkeys(note for split in splits.values() for note in split.notes)
    measured = {name: splits[name] for name in ("val", "test") if name in splits}
    if needs_labels:
        measured = {
            name: labelled for name, split in measured.items() if (labelled := _labelled(split, notes)) is not None
        }
    train, evaluation = _by_role(config, train, measured.get("val"), measured.get("test"), seed)
    return RunData(train=train, evaluation=evaluation, notes=tuple(notes))


def _opened(where: str, config: DataConfig, seed: int, needs_labels: bool) -> dict[str, Dataset]:
    """Open the splits of one place, of which one is for training; without need of labels, loose images count too."""
    splits = open_splits(
        where,
        val_fraction=config.val_fraction,
        seed=seed,
        skip_broken=config.skip_broken,
        root=config.root,
        loose=not needs_labels,
    )
    if "train" not in splits:
        raise InputError(f"{where} has the splits {', '.join(splits)}, but none to train on; name one train.")
    return splits


def _splits(places: Sequence[dict[str, Dataset]]) -> dict[str, Dataset]:
    """Put the splits of several places together by name; val and test are one, unless a place has both."""
    if len(places) == 1:
        return places[0]
    splits = [place.get("val") or place.get("test") for place in places]
    others = [split for split in splits if split is not None]
    whole = {"train": join_datasets([place["train"] for place in places])}
    return whole | ({"val": replace(join_datasets(others), split="val")} if others else {})


def _check_classes(train: Dataset, where: str) -> None:
    """Refuse images from which no classifier can be learned."""
    if not train.labels or bool((train.targets < 0).any()):
        raise InputError(
            f"{where} has images without a class, which cannot be learned from; put each class into a folder of its "
            "own, or give a CSV with path and label."
        )
    if len(train.labels) < 2:
        raise InputError(f"{where} has one class only, {train.labels[0]!r}; a classifier needs at least two.")
    empty = [label for label, count in zip(train.labels, train.counts, strict=True) if not count]
    if empty:
        raise InputError(f"the training split of {where} has no image of {', '.join(empty)}; add some.")


def _labelled(split: Dataset, notes: dict[str, None]) -> Dataset | None:
    """Return the images of a split that can be scored, and note how many cannot; None without any."""
    indices = np.flatnonzero(split.targets >= 0)
    if len(indices) < len(split):
        notes[f"{len(split) - len(indices)} images of {split.split} have no class and are left out."] = None
    return split.take(indices) if len(indices) else None


def _by_role(
    config: DataConfig, train: Dataset, val: Dataset | None, test: Dataset | None, seed: int
) -> tuple[Dataset, Dataset | None]:
    """Return the split to learn from and the split to evaluate on.

    With val and test, settings are chosen on val, and transfer learns from train and val. With one of them, that one
    is the test, and settings are chosen on a part of the training images.
    """
    if config.role == "train":
        return train, val or test
    if val is not None and test is not None:
        return (train, val) if config.role == "dev" else (joined(train, val), test)
    if config.role == "transfer":
        return train, val or test
    rest, dev = stratified_split(train, config.dev_fraction, seed)
    if empty := [label for label, count in zip(dev.labels, dev.counts, strict=True) if not count]:
        raise InputError(
            f"{config.where} has only one training image of {', '.join(empty)}, which leaves none for the dev split; "
            "add images, or give one `learning_rate`, which needs no dev split."
        )
    return rest, replace(dev, split="dev")


def names_digest(dataset: Dataset | None) -> str | None:
    """Digest the names and classes of images, in order, whatever their folder; None without a data set."""
    if dataset is None:
        return None
    names = (dataset.name(index).rpartition("/")[2] for index in range(len(dataset)))
    lines = (f"{target} {name}" for target, name in zip(dataset.targets.tolist(), names, strict=True))
    hashed = hashlib.sha256()
    for number, line in enumerate(lines):  # all of them at once would be gigabytes
        hashed.update((f"\n{line}" if number else line).encode())
    return hashed.hexdigest()


def files_digest(*splits: Dataset) -> str:
    """Digest the files of images: paths below the root, sizes and times, or the numbers of arrays."""
    hashed = hashlib.sha256()
    for split in splits:
        hashed.update(split.pictures.digest(split.rows))
    return hashed.hexdigest()


def absolute(where: str) -> str:
    """Return an absolute path of data; a name that is not a path stays as it is."""
    is_path = os.path.exists(where) or is_pattern(where)  # noqa: PTH110 - which refuses names that are too long
    return str(Path(where).absolute()) if is_path else where


def absolute_data(config: DataConfig) -> DataConfig:
    """Return the data of a run with absolute paths."""
    root = None if config.root is None else absolute(config.root)
    return replace(config, where=absolute(config.where), others=tuple(map(absolute, config.others)), root=root)


def joined(one: Dataset, other: Dataset) -> Dataset:
    """Put two splits of the same data together."""
    return replace(
        one, rows=np.concatenate([one.rows, other.rows]), targets=np.concatenate([one.targets, other.targets])
    )


def check_same(data: RunData, config: RunConfig, *, every_image: bool = True, same_data: bool = False) -> None:
    """Refuse data that has changed since a stored run was made with it.

    Without `every_image`, only its classes and their number count; with `same_data`, files may have other times.
    """
    then, now = config.facts, data.facts
    changes = [f"{then.images} training images then, {now.images} now"] if now.images != then.images else []
    changes += [f"no class {label} any more" for label in then.labels if label not in now.labels]
    changes += [f"a new class {label}" for label in now.labels if label not in then.labels]
    if every_image and not changes and replace(now, files_digest=None) != replace(then, files_digest=None):
        changes = ["other images, or other names of them"]
    if every_image and not changes and not same_data and now.files_digest != then.files_digest:
        raise InputError(
            f"{config.data.where} has the images that the run was made with by name, but files of other sizes or "
            "times, or other pixels; bring back the images, or if they were only copied or touched, resume with "
            "`same_data`."
        )
    if changes:
        raise InputError(
            f"{config.data.where} is not what the run was made with: {'; '.join(changes)}; it needs the same data."
        )


def usual_side(dataset: Dataset) -> int:
    """Return the median short side of some images, in pixels, spread over the data set."""
    sides = []
    for index in np.linspace(0, len(dataset) - 1, min(PROBED, len(dataset))).astype(int):
        try:
            sides.append(_short_side(dataset.read(int(index))))
        except (ImageError, OSError):
            continue
    if not sides:
        raise InputError(
            f"none of {len(dataset)} images of {dataset.where} could be read; `vitrail data` lists the reasons."
        )
    return int(np.median(sides))


def _short_side(image: bytes | np.ndarray) -> int:
    if isinstance(image, np.ndarray):
        return min(image.shape[:2])
    header = probe(image)
    return min(header.height, header.width)
