"""The answers of a model: confusions, classes, and its most confident mistakes."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from vitrail.base.scores import Confusion, interval, most_confused
from vitrail.report.markup import Html, bar, folded, name, number, percent, table, tag, text
from vitrail.report.plots import HIT, MISS, data_uri, heat_map, picture_uri, strengths, thumbnail
from vitrail.report.section import Figure, Section, section, sentence
from vitrail.report.story import EvaluationStory, Mistake

MOST_NUMBERED = 20
"""The most classes whose matrix has room for numbers."""
MOST_LISTED = 100
"""The most classes that are all listed at once."""
MOST_FOLDED = 1000
"""The most classes that are all listed after a click."""
WORST = 50
"""How many classes are listed when there are more."""
MOST_MISTAKES = 24
"""The most images in the gallery."""


def answer_sections(story: EvaluationStory, wrong: Sequence[Mistake]) -> list[Section]:
    """Show confusions, classes and mistakes, with the accuracy and its interval at the top of the page."""
    if not story.scores.total:
        return [sentence("Evaluation", f"None of the images of {story.split} could be read.")]
    return [replace(confusions(story), figures=tuple(_figures(story))), classes(story), mistakes(wrong)]


def _figures(story: EvaluationStory) -> Iterator[Figure]:
    scores = story.scores
    low, high = interval(scores.correct, scores.total)
    spread = f"95% interval {percent(low)} to {percent(high)}; {number(scores.total)} images"
    yield Figure(label=f"{story.split} accuracy", value=percent(scores.accuracy, 2), note=spread)
    if story.top5 is not None and len(story.labels) > 5:
        yield Figure(label=f"{story.split} top-5 accuracy", value=percent(story.top5, 2))


def confusions(story: EvaluationStory) -> Section:
    """Show the matrix, as large as its classes allow, and the pairs that are confused most often."""
    classes = len(story.labels)
    if story.confusion is None:
        note = f"With {classes:,} classes the matrix is too large to show."
        return sentence("Confusions", note)
    if classes <= MOST_NUMBERED:
        matrix = _matrix(story.labels, story.confusion)
        note = "Rows are true classes, columns are answers; colour is the share of the row."
    else:
        address = data_uri(heat_map(story.confusion))
        matrix = tag("img", src=address, alt=f"Confusion matrix of {classes} classes", class_="heat")
        note = (
            f"Rows are the {classes:,} true classes, columns are answers, both in the order of the labels; "
            "blue is right, red is wrong."
        )
    picture = tag("div", matrix, tag("p", text(note), class_="muted"))
    pairs = tag("div", tag("h3", text("Most confused")), _pairs(story.labels, story.confusion))
    return section("Confusions", tag("div", picture, pairs, class_="two"))


def classes(story: EvaluationStory) -> Section:
    """List the classes, the worst first; all of them unless there are too many."""
    scores = story.scores
    order = np.argsort(np.nan_to_num(scores.f1, nan=2.0), kind="stable")  # classes without images or answers come last
    count = len(story.labels)
    summary = f"Balanced accuracy {percent(scores.balanced_accuracy)}, mean F1 {percent(scores.macro_f1)}."
    if count <= MOST_LISTED:
        whole = _classes(story, order)
        parts = [tag("div", whole, class_="tall") if count > MOST_NUMBERED else whole]
        lead = f"All {count} classes, the worst first. " if count > 1 else ""
    else:
        parts = [_classes(story, order[:WORST])]
        lead = f"The worst {WORST} of {count:,} classes. "
    if MOST_LISTED < count <= MOST_FOLDED:
        everything = tag("div", _classes(story, np.arange(count)), class_="tall")
        parts.append(folded(f"All {count:,} classes, in the order of the labels", everything))
    return section("Classes", tag("p", text(lead + summary), class_="muted"), *parts)


def mistakes(wrong: Sequence[Mistake]) -> Section:
    """Show the most confident wrong answers."""
    order = sorted(wrong, key=lambda mistake: (-mistake.confidence, mistake.name))[:MOST_MISTAKES]
    if not order:
        return sentence("Most confident mistakes", "There are none to show.")
    words = "The answer with its probability, then the true class."
    if any(mistake.overlay is not None for mistake in order):
        words += " Beside each image is what the model looked at for its answer, from dark to bright."
    note = tag("p", text(words), class_="muted")
    return section("Most confident mistakes", note, tag("div", *map(_mistake, order), class_="gallery"))


def _mistake(mistake: Mistake) -> Html:
    few = "few" if max(mistake.pixels.shape[1:]) <= 64 else ""
    image = tag("img", src=data_uri(thumbnail(mistake.pixels)), alt=f"{mistake.name}: {mistake.truth}", class_=few)
    answer = tag("span", name(mistake.answer), text(f" {percent(mistake.confidence, 0)}"), class_="wrong")
    truth = tag("span", text("is "), name(mistake.truth))
    label, file = tag("p", answer, Html("<br>"), truth), tag("p", name(mistake.name), class_="file")
    if mistake.overlay is None:
        return tag("figure", image, label, file)
    seen = tag("img", src=picture_uri(mistake.overlay), alt=f"What the model looked at for {mistake.answer}")
    return tag("figure", tag("div", image, seen), label, file, class_="seen")


def _matrix(labels: Sequence[str], confusion: Confusion) -> Html:
    strength = strengths(confusion)
    corner = tag("th", text("truth \N{RIGHTWARDS ARROW} answer"), scope="col")
    head = tag("tr", corner, *(tag("th", name(label), scope="col", title=label) for label in labels))
    rows = []
    for truth, label in enumerate(labels):
        cells = (
            _cell(
                int(confusion[truth, answer]), float(strength[truth, answer]), f"{label} \N{RIGHTWARDS ARROW} {other}"
            )
            for answer, other in enumerate(labels)
            if answer != truth
        )
        right = _cell(int(confusion[truth, truth]), float(strength[truth, truth]), label, colour=HIT)
        ordered = list(cells)
        ordered.insert(truth, right)
        rows.append(tag("tr", tag("th", name(label), scope="row", title=label), *ordered))
    inside = tag("table", tag("thead", head), tag("tbody", *rows), class_="matrix")
    return tag("div", inside, class_="scroll")


def _cell(count: int, strength: float, what: str, *, colour: tuple[int, int, int] = MISS) -> Html:
    if count == 0:
        return tag("td", text("0"), class_="none")
    red, green, blue = colour
    shade = f"background:rgba({red},{green},{blue},{strength:.2f})"
    title = f"{what}: {count:,}, {percent(strength**2)}"
    return tag("td", text(f"{count:,}"), style=shade, title=title, class_="strong" if strength > 0.62 else "")


def _pairs(labels: Sequence[str], confusion: Confusion) -> Html:
    pairs = most_confused(confusion, 10)
    if not pairs:
        return tag("p", text("Every answer was right."), class_="muted")
    support = confusion.sum(axis=1, dtype=np.int64)
    rows = (
        (
            name(labels[truth]),
            name(labels[answer]),
            text(number(images)),
            text(percent(images / int(support[truth]))),
        )
        for truth, answer, images in pairs
    )
    return table(("truth", "answer", "images", "share"), rows, kind="pairs")


def _classes(story: EvaluationStory, order: np.ndarray) -> Html:
    scores = story.scores
    rows = (
        (
            name(story.labels[at]),
            text(number(int(scores.support[at]))),
            bar(float(scores.recall[at]), percent(float(scores.recall[at]))),
            text(percent(float(scores.precision[at]))),
            text(percent(float(scores.f1[at]))),
        )
        for at in map(int, order)
    )
    return table(("class", "images", "recall", "precision", "F1"), rows)
