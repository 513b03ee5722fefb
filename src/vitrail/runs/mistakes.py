"""Answers as a page shows them: class by class, and the images with wrong ones."""

from vitrail.base.errors import ImageError
from vitrail.data.dataset import Dataset
from vitrail.evaluation.classify import Answers
from vitrail.report.story import EvaluationStory, Mistake

MISTAKES = 24
MOST_CLASSES_IN_MATRIX = 2000
"""With more, a matrix takes more memory than it tells."""


def evaluation_story(
    answers: Answers, labels: tuple[str, ...], *, split: str, top5: float | None = None
) -> EvaluationStory:
    """Tell how a model answered on a split, without the matrix where there are too many classes for one."""
    count = len(labels)
    return EvaluationStory(
        split=split,
        labels=labels,
        scores=answers.scores(count),
        confusion=answers.confusion(count) if count <= MOST_CLASSES_IN_MATRIX else None,
        top5=top5,
    )


def shown_mistakes(dataset: Dataset, answers: Answers, most: int = MISTAKES) -> list[Mistake]:
    """Return the wrong answers that the model was surest of; the labels of the data set are those of the answers."""
    return [mistake for index in answers.mistakes(most) for mistake in _mistake(dataset, answers, int(index))]


def _mistake(dataset: Dataset, answers: Answers, index: int) -> list[Mistake]:
    try:
        pixels = dataset.image(index)
    except ImageError:
        return []
    return [
        Mistake(
            pixels=pixels if pixels.shape[0] in (1, 3) else pixels[:1],
            name=dataset.name(index),
            truth=dataset.labels[answers.targets[index]],
            answer=dataset.labels[answers.predicted[index]],
            confidence=float(answers.confidence[index]),
        )
    ]
