"""What every model is shown: one size of images, one grid of cells, one colour to cover with, one seed."""

from dataclasses import dataclass, replace

import torch
from jaxtyping import UInt8
from torch import Tensor

from vitrail.analysis.cells import Cells, Colour
from vitrail.analysis.faithfulness import Order
from vitrail.analysis.methods import model_config
from vitrail.base.shapes import Images, Logits, NewPixels, PixelBatch, Pixels
from vitrail.data.pixels.decode import to_channels
from vitrail.data.pixels.resize import resize
from vitrail.data.preprocessing import Preprocessing
from vitrail.data.stress.draws import Draws
from vitrail.data.transforms import preprocess, standardise
from vitrail.evaluation.subset import Choice, class_scores
from vitrail.runtime.engine import Engine, TorchEngine

SeenBatch = UInt8[Tensor, "batch new_channel new_height new_width"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Stage:
    """How images are brought up before they are stressed; the same for all models."""

    preprocessing: Preprocessing
    """The size and geometry of the first model."""
    cells: Cells
    """The patches of the first model that has some."""
    colour: Colour
    """What covers a cell: the mean colour of the first model's input."""
    seed: int

    def bring(self, image: Pixels) -> NewPixels:
        """Return an image in the size of the stage."""
        return preprocess(to_channels(image, self.preprocessing.channels), self.preprocessing)


@dataclass(frozen=True, kw_only=True, eq=False)
class Subject:
    """One image on the stage."""

    stage: Stage
    pixels: Pixels
    row: int
    """Which picture of its source it is: with the seed and the name of a stress, this decides every draw."""
    order: Order | None = None
    """The cells from the most salient to the least, where a stress needs them."""

    def draws(self, stress: str) -> Draws:
        """Return the random numbers of one stress."""
        return Draws(seed=self.stage.seed, stress=stress, row=self.row)


@dataclass(frozen=True, kw_only=True, eq=False)
class Contestant:
    """One model: what it is called, what runs it, and the classes that it is scored over."""

    name: str
    engine: Engine
    choice: Choice

    def scores(self, pixels: PixelBatch) -> Logits:
        """Return the score of each scored class for pixels of the stage."""
        return class_scores(self.engine.logits(self.seen(pixels)), self.choice).float().cpu()

    def seen(self, pixels: PixelBatch) -> SeenBatch:
        """Return pixels of the stage in the model's own size and channels."""
        how = self.engine.preprocessing
        if tuple(pixels.shape[2:]) == how.image_size and pixels.shape[1] == how.channels:
            return pixels
        images = (resize(image, how.image_size, how.interpolation, how.antialias) for image in pixels)
        return torch.stack([to_channels(image, how.channels) for image in images])

    def slope_scores(self, values: Images) -> Logits:
        """Return the scores for the model's own pixels as fractions, with gradients."""
        assert isinstance(self.engine, TorchEngine)  # noqa: S101 - others are not attacked
        inputs = standardise(values, self.engine.preprocessing).to(self.engine.dtype)
        return class_scores(self.engine.model(inputs), self.choice)

    def scores_at(self, images: list[Pixels], size: tuple[int, int]) -> Logits:
        """Return the scores for whole images brought to another size than the model was trained for."""
        assert isinstance(self.engine, TorchEngine)  # noqa: S101 - others are not asked
        how = replace(self.engine.preprocessing, image_size=size)
        pixels = torch.stack([preprocess(to_channels(image, how.channels), how) for image in images])
        with torch.inference_mode():
            logits = self.engine.model(self.engine.inputs(pixels), any_size=True)
        return class_scores(logits, self.choice).float().cpu()

    def size_at(self, factor: int | float) -> tuple[int, int]:
        """Return the size nearest to `factor` times the trained one that is made of whole patches."""
        (height, width), config = self.engine.preprocessing.image_size, model_config(self.engine)
        rows, columns = (config and config.grid) or (height, width)
        unit = (max(height // rows, 1), max(width // columns, 1))
        return max(round(factor * rows), 1) * unit[0], max(round(factor * columns), 1) * unit[1]
