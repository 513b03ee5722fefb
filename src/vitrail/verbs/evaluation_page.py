"""The page of an evaluation, gathered from its figures, its images and its model."""

from pathlib import Path

from vitrail.evaluation.calibration import EDGES
from vitrail.evaluation.evaluation import Evaluation, described
from vitrail.evaluation.metrics import Metrics
from vitrail.model.cost import cost
from vitrail.model.patches import size_text
from vitrail.report.evaluation_page import EvaluationPage
from vitrail.report.markup import number, percent
from vitrail.report.reliability import Bin
from vitrail.report.section import Figure
from vitrail.report.story import DataStory, Mistake
from vitrail.runs.mistakes import evaluation_story, surest_mistakes
from vitrail.verbs.network import Network


def evaluation_page(evaluation: Evaluation, network: Network) -> EvaluationPage:
    """Gather the content of the page."""
    preprocessing = network.engine.preprocessing
    dataset, metrics, labels = evaluation.dataset, evaluation.metrics, evaluation.choice.labels
    story = None
    if metrics is not None:
        story = evaluation_story(evaluation.answers, labels, split=dataset.split or "all")
    counts = dict(zip(labels, map(int, dataset.counts), strict=True)) if metrics is not None else {}
    return EvaluationPage(
        title=f"{Path(evaluation.model).name} on {described(dataset)}",
        figures=[
            Figure(label=name, value=value, note=f"{interval} (95%)") for name, value, interval in evaluation.rows()
        ],
        evaluation=story,
        bins=_bins(metrics) if metrics is not None else (),
        calibration=_calibration(metrics) if metrics is not None else "",
        mistakes=_mistakes(evaluation, network) if metrics is not None else (),
        data=DataStory(
            where=dataset.where,
            splits={dataset.split or "all": counts} if counts else {},
            image_size=preprocessing.image_size,
            channels=preprocessing.channels,
            skipped=len(evaluation.skipped),
        ),
        model=_facts(evaluation, network),
        notes=evaluation.notes,
    )


def _mistakes(evaluation: Evaluation, network: Network) -> list[Mistake]:
    return surest_mistakes(evaluation.dataset, evaluation.answers, network.engine, evaluation.choice)


def _bins(metrics: Metrics) -> list[Bin]:
    reliability = metrics.reliability
    return [
        Bin(
            low=float(EDGES[at]),
            high=float(EDGES[at + 1]),
            images=int(reliability.images[at]),
            confidence=float(reliability.confidence[at]),
            accuracy=float(reliability.accuracy[at]),
        )
        for at in range(len(reliability.images))
    ]


def _calibration(metrics: Metrics) -> str:
    reliability, accuracy = metrics.reliability, metrics.figures["accuracy"].value
    mean = float(
        (reliability.images[reliability.images > 0] @ reliability.confidence[reliability.images > 0]) / metrics.images
    )
    way = "too sure" if mean > accuracy else "not sure enough"
    return (
        f"Mean confidence {percent(mean)} against an accuracy of {percent(accuracy)}: {way} by "
        f"{abs(100 * (mean - accuracy)):.1f} points. Expected calibration error {percent(reliability.ece)}, maximum "
        f"{percent(reliability.mce)}, over {len(reliability.images)} bins of equal width."
    )


def _facts(evaluation: Evaluation, network: Network) -> dict[str, str]:
    pixels, choice = network.engine.preprocessing, evaluation.choice
    facts = {"file": evaluation.model}
    if network.config is not None:
        need = cost(network.config)
        facts |= {"parameters": number(int(need.parameters)), "GMACs of one image": number(need.macs / 1e9)}
    facts["images"] = f"{size_text(pixels.image_size)}, {pixels.geometry}, {pixels.interpolation}"
    scored = "" if choice.whole else f", scored as {len(choice.labels):,}: {'; '.join(choice.notes)}"
    facts["classes"] = f"{choice.num_outputs:,}{scored}"
    return facts | ({"SHA-256": evaluation.digest} if evaluation.digest else {})
