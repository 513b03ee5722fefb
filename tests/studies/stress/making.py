"""Models and images for stress tests: 16x16 pixels, four classes."""

import numpy as np

from tests.data.pictures import dataset, photo
from tests.tiny import perturbed, resnet_config, vit_config
from vitrail import Preprocessing
from vitrail.analysis.cells import mean_colour
from vitrail.analysis.methods import cells_of
from vitrail.data.dataset import Dataset
from vitrail.evaluation.subset import choose
from vitrail.runtime.engine import TorchEngine
from vitrail.studies.stress.catalogue import catalogue
from vitrail.studies.stress.measure import Measuring
from vitrail.studies.stress.stage import Contestant, Stage
from vitrail.studies.stress.stress_test import StressTest

SIZE = (16, 16)
PIXELS = Preprocessing(image_size=SIZE)
LABELS = ("ant", "bee", "cat", "dog")
TESTS = {test.name: test for test in catalogue(SIZE)}


def scenes(count: int = 14) -> Dataset:
    pictures = [np.asarray(photo(number, 20, 18)) for number in range(count)]
    return dataset(pictures, [number % 4 for number in range(count)], labels=LABELS)


def contestant(name: str = "vit", size: tuple[int, int] = SIZE, **changes) -> Contestant:
    fields = {"image_size": size, "num_classes": 4} | changes
    config = resnet_config(**fields) if name == "resnet" else vit_config(patch_size=(4, 4), **fields)
    engine = TorchEngine(perturbed(config, by=0.5), Preprocessing(image_size=size))
    return Contestant(name=name, engine=engine, choice=choose(scenes(), LABELS, 4))


def stage(first: Contestant, seed: int = 0) -> Stage:
    how = first.engine.preprocessing
    return Stage(preprocessing=how, cells=cells_of(first.engine), colour=mean_colour(how), seed=seed)


def measuring(contestants: list[Contestant], tests: list[StressTest], **changes) -> Measuring:
    data = changes.pop("dataset", scenes())
    fields = {
        "dataset": data,
        "contestants": contestants,
        "targets": np.stack([data.targets] * len(contestants)),
        "tests": tests,
        "stage": stage(contestants[0]),
        "batch": 5,
        "steps": 2,
        "note": lambda _: None,
    }
    return Measuring(**fields | changes)
