"""The work on one image of an explanation: the answers, the maps of each method, and how far they can be trusted."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from vitrail.analysis import faithfulness
from vitrail.analysis.cells import mean_colour
from vitrail.analysis.methods import Method, MethodSettings, cells_of, heat_maps, needs_class, probabilities
from vitrail.base.errors import ImageError
from vitrail.base.shapes import NewPixels
from vitrail.data.pictures import Picture, pixels_of
from vitrail.data.transforms import preprocess
from vitrail.report.overlay import picture_of
from vitrail.runtime.engine import Engine
from vitrail.verbs.explanation import Explanation, HeatMap, Trust


@dataclass(frozen=True, kw_only=True, eq=False)
class Explaining:
    """Everything that is the same for all images."""

    engine: Engine
    names: tuple[str, ...]
    methods: tuple[Method, ...]
    settings: MethodSettings
    number: int | None
    """The class that is explained; None explains the most probable ones."""
    top: int
    points: int
    seed: int

    def explain(self, picture: Picture, name: str, place: int) -> Explanation:
        """Explain one image."""
        preprocessing = self.engine.preprocessing
        whole = pixels_of(picture, preprocessing.channels)
        pixels = preprocess(whole, preprocessing)
        scores = probabilities(self.engine, pixels[None])[0].cpu()
        if not scores.isfinite().all():
            raise ImageError("the model's scores for it are not finite; `vitrail verify` checks its weights.")
        order = scores.argsort(descending=True, stable=True).tolist()
        classes = [self.number] if self.number is not None else order[: self.top]
        random = self._random(pixels, classes[0], place)
        maps = [heat for method in self.methods for heat in self._maps(method, pixels, scores, classes, random, place)]
        return Explanation(
            name=name,
            image_size=(whole.shape[1], whole.shape[2]),
            picture=picture_of(whole),
            preprocessing=preprocessing,
            top=tuple((self.names[number], float(scores[number])) for number in order[: max(self.top, 3)]),
            maps=tuple(maps),
        )

    def _maps(
        self,
        method: Method,
        pixels: NewPixels,
        scores: torch.Tensor,
        classes: Sequence[int],
        random: faithfulness.Curves | None,
        place: int,
    ) -> list[HeatMap]:
        """Return a map of each class, the first one measured; a method without classes has one map."""
        numbers = torch.tensor(classes if needs_class(method) else classes[:1])
        batch = heat_maps(method, self.engine, pixels.expand(len(numbers), -1, -1, -1), numbers, self.settings)
        cells = cells_of(self.engine)
        values = cells.means(batch.maps)
        maps = []
        for at, number in enumerate(numbers.tolist()):
            trust = None
            if random is not None and at == 0:
                order = faithfulness.order_of(values[at], self.seed, "ties", place)
                trust = _trust(self._curves(pixels, number, order), random)
            total = float(batch.maps[at].abs().sum())
            error = None if batch.errors is None else abs(float(batch.errors[at])) / max(total, 1e-12)
            maps.append(
                HeatMap(
                    method=method,
                    label=self.names[number],
                    probability=float(scores[number]),
                    values=batch.maps[at].double().numpy(),
                    cells=values[at].double().numpy().reshape(cells.grid),
                    trust=trust,
                    error=error,
                )
            )
        return maps

    def _random(self, pixels: NewPixels, number: int, place: int) -> faithfulness.Curves | None:
        """Measure random maps, and return their mean curves."""
        if self.points < 2:
            return None
        cells = len(cells_of(self.engine))
        orders = [
            faithfulness.random_order(cells, self.seed, "random", place, draw)
            for draw in range(faithfulness.RANDOM_MAPS)
        ]
        curves = [self._curves(pixels, number, order) for order in orders]
        return faithfulness.Curves(
            shares=curves[0].shares,
            deletion=np.mean([curve.deletion for curve in curves], axis=0),
            insertion=np.mean([curve.insertion for curve in curves], axis=0),
        )

    def _curves(self, pixels: NewPixels, number: int, order: faithfulness.Order) -> faithfulness.Curves:
        return faithfulness.measure(
            lambda batch: probabilities(self.engine, batch),
            pixels,
            number,
            order,
            cells=cells_of(self.engine),
            colour=mean_colour(self.engine.preprocessing),
            points=self.points,
        )


def _trust(curves: faithfulness.Curves, random: faithfulness.Curves) -> Trust:
    return Trust(
        shares=curves.shares,
        deletion=curves.deletion,
        insertion=curves.insertion,
        random_deletion=random.deletion,
        random_insertion=random.insertion,
    )
