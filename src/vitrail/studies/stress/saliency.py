"""Which cells of an image matter most, for all models together: the same cells are covered for each of them."""

from collections.abc import Sequence

import torch

from vitrail.analysis.faithfulness import Order, order_of
from vitrail.analysis.methods import heat_maps, quick_method
from vitrail.base.shapes import PixelBatch
from vitrail.runtime.engine import TorchEngine
from vitrail.studies.stress.stage import Contestant, Stage


def salient_orders(
    contestants: Sequence[Contestant], stage: Stage, pixels: PixelBatch, rows: Sequence[int]
) -> list[Order]:
    """Order the cells of each image from the most salient to the least.

    Each model ranks the cells by a map of its own, for the class that it answers: attention weighted by gradients,
    Grad-CAM, or occlusion where nothing is known of what is inside and no other model is there. The mean rank decides.
    """
    known = [contestant for contestant in contestants if isinstance(contestant.engine, TorchEngine)]
    totals = torch.zeros(len(pixels), len(stage.cells), dtype=torch.float64)
    for contestant in known or contestants:
        seen = contestant.seen(pixels)
        answers = contestant.engine.logits(seen).argmax(dim=1).cpu()
        method, _ = quick_method(contestant.engine)
        values = stage.cells.means(heat_maps(method, contestant.engine, seen, answers).maps.float())
        for total, value, row in zip(totals, values, rows, strict=True):
            total[order_of(value, stage.seed, "stress", "ties", row)] -= torch.arange(len(total), dtype=torch.float64)
    return [order_of(total, stage.seed, "stress", "ties", row) for total, row in zip(totals, rows, strict=True)]
