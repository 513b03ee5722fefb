"""Train a model that names the classes of images."""

from dataclasses import dataclass
from pathlib import Path
from typing import Unpack

from vitrail.verbs.frame import training_frame
from vitrail.verbs.keywords import TrainKeywords
from vitrail.verbs.request import ClassifierRequest, make_request
from vitrail.verbs.settle import ScratchRequest, conduct_training, stored_execution
from vitrail.verbs.trained import TrainedRun


@dataclass(frozen=True, kw_only=True)
class TrainRequest(ScratchRequest, ClassifierRequest):
    """The keywords of `vitrail.train`."""


def train(data: str | Path | None = None, *, quiet: bool = False, **keywords: Unpack[TrainKeywords]) -> TrainedRun:
    """Train a model on a folder of images, or on any other data; other settings follow from the data by a rule.

        >>> run = vitrail.train("sample", steps=2, batch=8, fraction=0.01, out="run", quiet=True)
        >>> run.result.steps, run.report.name, run.model.config.num_classes
        (2, 'report.html', 10)

    `data` is a folder of class folders, a CSV, shards, arrays: whatever `vitrail.data.open` opens; None is the embedded
    sample. The keywords are the flags of `vitrail train`: model="S/16", minutes=10, image_size=64, batch, seed,
    learning_rate, mixup, out, resume, ...; `settings` takes any other by its path, as {"optimizer.beta2": 0.95}. The
    run writes the same folder and report as the command, resumes in the same way, and shows its progress on stderr
    unless it is `quiet`. A signal that stops it raises `StoppedError` after it was saved.
    """
    request = make_request(TrainRequest, data, keywords)
    with training_frame(request.threads, request.device, stored_execution(request)) as (ranks, stop):
        return conduct_training(request, ranks, stop, quiet=quiet)
