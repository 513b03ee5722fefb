"""What a model makes of data: labels that its features contradict, and a map of the images."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Int

from vitrail.analysis.flat_map import flat_map
from vitrail.base.notes import Note
from vitrail.base.progress import Progress
from vitrail.base.ranks import Ranks
from vitrail.data.budget import Budget
from vitrail.data.dataset import UNLABELLED
from vitrail.data.survey.scan import Scan, short_name
from vitrail.data.survey.summary import image_entry
from vitrail.evaluation.doubts import LabelDoubts, label_doubts
from vitrail.evaluation.extractor import Extractor
from vitrail.evaluation.features import Matrix, feature_preprocessing
from vitrail.evaluation.whitening import Whitening
from vitrail.published.find import model_name
from vitrail.report.image_map import Dot, DoubtfulImage, doubtful_images, image_map
from vitrail.report.markup import Html
from vitrail.verbs.network import Network
from vitrail.verbs.survey_tables import DoubtEntry, ImpressionReport

Rows = Int[np.ndarray, "image"]
MOST_DOTS = 1000
"""Images on the map."""
FEWEST_DOTS = 3
MOST_SHOWN = 24
"""Images with labels in doubt on the page."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Impressions:
    """Features of all readable images, and what they say."""

    model: str
    """The model that they are of."""
    digest: str | None
    """SHA-256 of its file."""
    rows: Rows
    """The images, by their numbers in the scan."""
    features: Matrix
    """Their features."""
    judged: Rows
    """The images with labels, by their numbers in the scan."""
    labels: LabelDoubts | None
    """What was found about those labels; None where classes are too few or too small."""

    def report(self, scan: Scan) -> ImpressionReport:
        """Return everything but the features as plain values."""
        doubts: list[DoubtEntry] = []
        if self.labels is not None:
            for place in self.labels.doubtful:
                other, doubt = scan.labels[self.labels.other[place]], round(float(self.labels.doubt[place]), 4)
                doubts.append({"image": image_entry(scan, int(self.judged[place])), "other": other, "doubt": doubt})
        return {
            "model": self.model,
            "digest": self.digest,
            "agreement": None if self.labels is None else round(self.labels.agreement, 4),
            "doubts": doubts,
        }

    @property
    def doubtful(self) -> Sequence[int]:
        """The images whose labels are in doubt, the most doubtful first."""
        return [] if self.labels is None else self.judged[self.labels.doubtful].tolist()

    def sections(self, scan: Scan) -> list[Html]:
        """Return what a page shows of them."""
        parts = [] if len(self.rows) < FEWEST_DOTS else [self._map(scan)]
        if self.labels is None or not len(self.labels.doubtful):
            return parts
        places = self.labels.doubtful
        images = [
            DoubtfulImage(
                pixels=scan.image(row := int(self.judged[place])),
                name=short_name(scan.name(row), scan.where),
                label=scan.label(row) or "",
                other=scan.labels[self.labels.other[place]],
            )
            for place in places[:MOST_SHOWN]
        ]
        return [doubtful_images(images, len(places), self.model), *parts]

    def _map(self, scan: Scan) -> Html:
        """Draw the images, or as many as fit, where their features lie."""
        chosen = np.unique(np.linspace(0, len(self.rows) - 1, min(len(self.rows), MOST_DOTS)).round().astype(np.int64))
        white = Whitening.of(self.features)(self.features[torch.from_numpy(chosen)])
        places, doubtful = flat_map(white), set(self.doubtful)
        dots = [
            Dot(
                pixels=scan.image(row),
                words=", ".join(filter(None, (scan.label(row), short_name(scan.name(row), scan.where)))),
                group=int(scan.targets[row]),
                doubtful=row in doubtful,
            )
            for row in self.rows[chosen].tolist()
        ]
        some = f"{len(dots):,} of {len(self.rows):,} images, evenly chosen" if len(dots) < len(self.rows) else "Images"
        note = (
            f"{some}, by the features of {self.model}: those that it finds alike lie together (t-SNE; distances across "
            "the map mean little). Point at a dot to see its image."
        )
        rings = " Dots with a ring have labels in doubt." if doubtful else ""
        return image_map(places, dots, scan.labels, note + rings)


def gather(network: Network, ranks: Ranks, scan: Scan, *, seed: int, progress: Progress, note: Note) -> Impressions:
    """Compute the features of every readable image of a scan, and judge the labels."""
    extractor = Extractor(
        engine=network.engine,
        preprocessing=feature_preprocessing(network.engine.preprocessing),
        ranks=ranks,
        progress=progress,
        note=note,
    )
    everything = Budget(share=1.0)
    parts = [extractor(dataset, skip_broken=everything) for dataset in scan.splits.values()]
    read = np.concatenate([part.read for part in parts]) & scan.readable
    values, rows = torch.cat([part.values for part in parts]), np.flatnonzero(read)
    judged = np.flatnonzero(read & (scan.targets != UNLABELLED))
    return Impressions(
        model=model_name(network.name),
        digest=network.digest,
        rows=rows,
        features=values[torch.from_numpy(rows)],
        judged=judged,
        labels=label_doubts(values[torch.from_numpy(judged)], scan.targets[judged], len(scan.labels), seed=seed)
        if len(judged)
        else None,
    )
