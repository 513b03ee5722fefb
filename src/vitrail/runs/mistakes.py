"""Images with wrong answers, as a page shows them, and how many classes it shows."""

from vitrail.analysis.story import Mistake
from vitrail.base.errors import ImageError
from vitrail.data.dataset import Dataset
from vitrail.evaluate.classify import Answers

MISTAKES = 24
MOST_CLASSES_IN_MATRIX = 2000


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
