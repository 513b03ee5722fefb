"""Answers as a page shows them: class by class, and the images with wrong ones."""

import torch

from vitrail.analysis.methods import best_method, heat_maps, is_small
from vitrail.analysis.placing import place
from vitrail.base.errors import ImageError
from vitrail.base.shapes import Pixels
from vitrail.data.dataset import Dataset
from vitrail.data.pixels.decode import to_channels
from vitrail.data.transforms import preprocess
from vitrail.evaluation.classify import Answers
from vitrail.evaluation.subset import Choice
from vitrail.report.overlay import Picture, overlay, picture_of
from vitrail.report.story import EvaluationStory, Mistake
from vitrail.runtime.engine import Engine

MISTAKES = 24
OVERLAY_SIDE = 160
"""Pixels of the longer side of an image below its map."""
MOST_CLASSES_IN_MATRIX = 2000
"""With more, a matrix takes much memory and helps little."""


def evaluation_story(
    answers: Answers, labels: tuple[str, ...], *, split: str, top5: float | None = None
) -> EvaluationStory:
    """Describe how a model answered on a split, without the matrix where there are too many classes for one."""
    count = len(labels)
    return EvaluationStory(
        split=split,
        labels=labels,
        scores=answers.scores(count),
        confusion=answers.confusion(count) if count <= MOST_CLASSES_IN_MATRIX else None,
        top5=top5,
    )


def surest_mistakes(
    dataset: Dataset, answers: Answers, engine: Engine | None = None, choice: Choice | None = None
) -> list[Mistake]:
    """Return the wrong answers that the model was surest of; the labels of the data set are those of the answers.

    With an `engine`, each has an overlay of what the model looked at; `choice` maps answers to its outputs.
    """
    mistakes = (_mistake(dataset, answers, int(index), engine, choice) for index in answers.mistakes(MISTAKES))
    return [mistake for mistake in mistakes if mistake is not None]


def _mistake(
    dataset: Dataset, answers: Answers, index: int, engine: Engine | None, choice: Choice | None
) -> Mistake | None:
    try:
        pixels = dataset.image(index)
    except ImageError:
        return None
    answer = int(answers.predicted[index])
    outputs = [answer] if choice is None else choice.outputs[choice.classes == answer].tolist()
    return Mistake(
        pixels=pixels if pixels.shape[0] in (1, 3) else pixels[:1],
        name=dataset.name(index),
        truth=dataset.labels[answers.targets[index]],
        answer=dataset.labels[answer],
        confidence=float(answers.confidence[index]),
        overlay=None if engine is None else overlay_for(engine, pixels, outputs),
    )


def overlay_for(engine: Engine, pixels: Pixels, outputs: list[int]) -> Picture | None:
    """Draw what speaks for the strongest of some outputs over an image; None where that takes too long."""
    method, _ = best_method(engine)
    if method == "occlusion" and not is_small(engine):  # a pass for each part of each image
        return None
    how = engine.preprocessing
    batch = preprocess(to_channels(pixels, how.channels), how)[None]
    number = max(outputs, key=engine.logits(batch)[0].tolist().__getitem__)
    heat = heat_maps(method, engine, batch, torch.tensor([number])).maps[0].clamp(min=0).double().numpy()
    picture = picture_of(pixels, OVERLAY_SIDE)
    size = (picture.shape[0], picture.shape[1])
    return overlay(picture, place(heat, how, (pixels.shape[1], pixels.shape[2]), size), signed=False)
