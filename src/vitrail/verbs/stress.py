"""Stress models: cover, shuffle, corrupt and attack images, and measure what is left of the accuracy."""

import os
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch

from vitrail.analysis.attacks import STEPS
from vitrail.analysis.cells import mean_colour
from vitrail.analysis.methods import cells_of, model_config
from vitrail.base.errors import InputError
from vitrail.base.notes import Note, logged
from vitrail.base.numbers import MOST_BATCH, MOST_SEED, check_whole
from vitrail.base.outputs import check_folder
from vitrail.base.progress import Progress, silent
from vitrail.checkpoint.labels import class_names
from vitrail.data.dataset import Dataset
from vitrail.data.stress.published import SEVERITIES, published_for
from vitrail.data.subsets import some_of
from vitrail.evaluation.bootstrap import FEWEST, MOST
from vitrail.evaluation.evaluation import described
from vitrail.evaluation.subset import choose
from vitrail.model.patches import Size, size_text
from vitrail.published.find import model_name
from vitrail.studies.stress.catalogue import catalogue, select
from vitrail.studies.stress.figures import summarise
from vitrail.studies.stress.measure import Measuring
from vitrail.studies.stress.result import StressResult
from vitrail.studies.stress.stage import Contestant, Stage
from vitrail.studies.stress.stress_test import StressTest
from vitrail.studies.stress.worst import worst_images
from vitrail.verbs.network import FileSettings, ModelLike, Network
from vitrail.verbs.networks import listed, open_data, open_networks
from vitrail.verbs.stress_files import FOLDER, PAGE, write_stress

File = str | os.PathLike[str]

IMAGES = 500
"""How many images are drawn at most by default: an interval of 95% is then at most 9 points wide."""


def stress(
    models: ModelLike | Sequence[ModelLike],
    data: File | Dataset,
    *,
    tests: str | Sequence[str] = "all",
    images: int = IMAGES,
    severities: Sequence[int] = SEVERITIES,
    budget: float = 8.0,
    steps: int = STEPS,
    split: str | None = None,
    labels: Sequence[str] | File | None = None,
    all_classes: bool = False,
    image_size: int | Size | None = None,
    num_heads: int | None = None,
    architecture: str | None = None,
    batch: int = 64,
    resamples: int = 1000,
    seed: int = 0,
    root: File | None = None,
    out: File | None = None,
    force: bool = False,
    pickle: bool = False,
    threads: int | None = None,
    device: str | torch.device = "auto",
    progress: Progress = silent,
    note: Note = logged,
) -> StressResult:
    """Measure how accuracy falls when images get harder, for one model or several side by side.

        >>> result = vitrail.stress("model.safetensors", "photos", tests="occlusion", images=6)
        >>> [f"{point.level:g}" for point in result.curve(result.models[0], "occlusion-random")]
        ['0.1', '0.25', '0.5', '0.65', '0.8', '0.9']

    `models` are files of any format, models in memory, classifiers or engines; the first is the baseline of the
    others, and its input size is the stage on which images are stressed: every model sees the same pixels, resized for
    those of another size. `tests` are groups (occlusion, shuffle, texture, frequency, corruptions, views, attacks,
    resolution) or single tests. `images` are drawn at random from the data, at most. Every draw is a function of
    `seed`, the test and the image: the same for every model and every `batch`.

    `severities` are those of the corruptions, `budget` is PGD's largest change of a value in levels of 255, and `steps`
    are those of both attacks. `out` is a folder that gets a page, charts, a JSON and a CSV file; a folder of another
    kind is written into only with `force`. The other keywords are those of `vitrail.evaluate`.
    """
    contenders = listed(models)
    for name, value, least, most in (
        ("images", images, 1, 10**7),
        ("batch", batch, 1, MOST_BATCH),
        ("steps", steps, 1, 10_000),
        ("resamples", resamples, FEWEST, MOST),
        ("seed", seed, -MOST_SEED, MOST_SEED),
    ):
        check_whole(name, value, least=least, most=most)
    words = [tests] if isinstance(tests, str) else list(tests)

    def tests_at(image_size: Size) -> tuple[StressTest, ...]:
        return select(words, catalogue(image_size, severities=severities, budget=budget))

    tests_at((32, 32))  # refuses what does not exist before anything is read
    folder = None if out is None else check_folder(out, FOLDER, PAGE, inputs=(*contenders, data, labels), force=force)
    file = FileSettings(
        image_size=image_size, num_heads=num_heads, architecture=architecture, pickle=pickle, device=device
    )
    with open_networks(contenders, verb="stress", file=file, threads=threads, note=note) as networks:
        dataset = open_data(data, networks[0], split=split, root=root, seed=seed)
        contestants = _contestants(contenders, networks, dataset, labels, all_classes=all_classes)
        stage = _stage(contestants, seed)
        chosen = tests_at(stage.preprocessing.image_size)
        sample, targets, drawn = _sample(dataset, contestants, images, seed)
        notes = (*_notes(networks, contestants, stage, chosen, dataset), *drawn)
        for sentence in notes:
            note(sentence)
        measuring = Measuring(
            dataset=sample,
            contestants=contestants,
            targets=targets,
            tests=chosen,
            stage=stage,
            batch=batch,
            steps=steps,
            note=note,
        )
        result = _measured(measuring, progress, budget=float(budget), resamples=resamples, notes=notes)
        return result if folder is None else replace(result, files=write_stress(result, folder))


def _measured(
    measuring: Measuring, progress: Progress, *, budget: float, resamples: int, notes: tuple[str, ...]
) -> StressResult:
    """Do the work, and gather its figures."""
    answers = measuring.answers(progress)
    sample, stage = measuring.dataset, measuring.stage
    return StressResult(
        models=tuple(contestant.name for contestant in measuring.contestants),
        data=described(sample),
        images=tuple(sample.name(int(index)) for index in np.flatnonzero(answers.counted)),
        tests=tuple(measuring.tests),
        answers=answers,
        summaries=summarise(answers, measuring.tests, resamples=resamples, seed=stage.seed),
        worst=worst_images(measuring, answers),
        settings={
            "seed": stage.seed,
            "steps": measuring.steps,
            "budget": budget,
            "parameters": published_for(stage.preprocessing.image_size).name,
            "image_size": list(stage.preprocessing.image_size),
            "grid": list(stage.cells.grid),
            "resamples": resamples,
        },
        failures=tuple(measuring.failures),
        notes=(*notes, *measuring.refused.values()),
    )


def _contestants(
    models: Sequence[ModelLike],
    networks: Sequence[Network],
    dataset: Dataset,
    labels: Sequence[str] | File | None,
    *,
    all_classes: bool,
) -> list[Contestant]:
    """Name the models, and match the classes of the data to those of each."""
    contestants: list[Contestant] = []
    for number, (model, network) in enumerate(zip(models, networks, strict=True), start=1):
        outputs = network.engine.num_outputs
        if not outputs:
            raise InputError(f"{network.name} has no head, so it answers nothing; fine-tune it first.")
        names = class_names(labels, network.info.labels, outputs)
        name = model_name(os.fspath(model)) if isinstance(model, str | os.PathLike) else f"model {number}"
        if name in {contestant.name for contestant in contestants}:
            name = f"{name} ({number})"
        choice = choose(dataset, names, outputs, all_classes=all_classes, mappable=False)
        contestants.append(Contestant(name=name, engine=network.engine, choice=choice))
    return contestants


def _stage(contestants: Sequence[Contestant], seed: int) -> Stage:
    """Take the size of the first model, and the patches of the first that has some there."""
    first = contestants[0].engine
    size = first.preprocessing.image_size
    engines = [contestant.engine for contestant in contestants]
    patched = [
        engine
        for engine in engines
        if (config := model_config(engine)) is not None
        and config.grid is not None
        and engine.preprocessing.image_size == size
    ]
    return Stage(
        preprocessing=first.preprocessing,
        cells=cells_of(patched[0] if patched else first),
        colour=mean_colour(first.preprocessing),
        seed=seed,
    )


def _sample(
    dataset: Dataset, contestants: Sequence[Contestant], images: int, seed: int
) -> tuple[Dataset, np.ndarray, tuple[str, ...]]:
    """Draw images that have a class for every model."""
    scored = [contestant.choice.targets(dataset.targets) >= 0 for contestant in contestants]
    labelled = np.flatnonzero(np.all(scored, axis=0))
    if not len(labelled):
        raise InputError(f"{dataset.where} has no image of a class that is scored; choose another split.")
    sample = some_of(dataset.take(labelled), images, seed)
    targets = np.stack([contestant.choice.targets(sample.targets) for contestant in contestants])
    sentence = f"{len(sample):,} of {len(labelled):,} images were drawn at random; `images` sets how many."
    return sample, targets, (sentence,) if len(sample) < len(labelled) else ()


def _notes(
    networks: Sequence[Network],
    contestants: Sequence[Contestant],
    stage: Stage,
    tests: Sequence[StressTest],
    dataset: Dataset,
) -> tuple[str, ...]:
    several = len(contestants) > 1
    notes = [
        f"{contestant.name}: {sentence}" if several else sentence
        for contestant, network in zip(contestants, networks, strict=True)
        for sentence in (*network.notes, *network.head_notes)
    ]
    notes += [*dataset.notes, *contestants[0].choice.notes]
    size = stage.preprocessing.image_size
    for contestant in contestants:
        own = contestant.engine.preprocessing.image_size
        if own != size:
            notes.append(
                f"{contestant.name} takes images of {size_text(own)}; it gets the stressed images of "
                f"{size_text(size)}, resized."
            )
    groups = {test.group for test in tests}
    if "corruptions" in groups:
        parameters = published_for(size).name
        notes.append(f"corruptions have the parameters of {parameters}, but frost is drawn, not photographed.")
    if any(test.salient for test in tests) and several:
        notes.append("the most salient patches are those of all models together, by their mean rank.")
    if "attacks" in groups:
        notes.append("stronger attacks than these exist: what is left is an upper bound.")
    return tuple(dict.fromkeys(notes))
