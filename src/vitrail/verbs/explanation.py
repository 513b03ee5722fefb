"""The explanation of one image: its maps, and figures of their trustworthiness."""

import base64
import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, UInt8

from vitrail.analysis.methods import Method, is_signed
from vitrail.analysis.placing import place
from vitrail.data.preprocessing import Preprocessing
from vitrail.model.patches import Size
from vitrail.report.markup import percent
from vitrail.report.overlay import overlay, side_by_side

Picture = UInt8[np.ndarray, "height width 3"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Trust:
    """Deletion and insertion of one map, beside those of random maps; see `vitrail.analysis.faithfulness`."""

    shares: Float[np.ndarray, "point"]
    """The share of the image that is covered, or uncovered."""
    deletion: Float[np.ndarray, "point"]
    """The probability of the class while the image is covered in the order of the map."""
    insertion: Float[np.ndarray, "point"]
    """The probability of the class while the image is uncovered in that order."""
    random_deletion: Float[np.ndarray, "point"]
    """The same in random order, as a mean."""
    random_insertion: Float[np.ndarray, "point"]
    """The same in random order, as a mean."""

    @property
    def areas(self) -> dict[str, float]:
        """The areas below the four curves, by name."""
        names = ("deletion", "random_deletion", "insertion", "random_insertion")
        return {name: float(np.trapezoid(getattr(self, name), self.shares)) for name in names}


@dataclass(frozen=True, kw_only=True, eq=False)
class HeatMap:
    """How much each place of an image counts for one class, by one method."""

    method: Method
    """The method."""
    label: str
    """The class that is explained."""
    probability: float
    """The probability of that class."""
    values: Float[np.ndarray, "rows columns"]
    """The map, over the network's input, on the method's own grid: patches, pixels, or cells of a feature map."""
    cells: Float[np.ndarray, "cell_rows cell_columns"]
    """The same on the grid in which the image is covered for deletion and insertion."""
    trust: Trust | None = None
    """How faithful the map is; None where that was not measured."""
    error: float | None = None
    """Of integrated gradients: by how much the values miss the sum that they should have, as a share of the sum
    of their sizes."""

    @property
    def title(self) -> str:
        """The class with its probability, and the method."""
        return f"{self.label} {percent(self.probability)}, {self.method}"

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the map's finest grid as plain values for JSON."""
        return {
            "method": self.method,
            "class": self.label,
            "probability": self.probability,
            "map": np.round(self.cells, 7).tolist(),
            "areas": None if self.trust is None else self.trust.areas,
            "completeness_error": self.error,
        }


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Explanation:
    """One image, the model's answers, and its maps."""

    name: str
    """The path of the image, or its place among the others."""
    image_size: Size
    """Height and width of the original image."""
    picture: Picture
    """The image as it is shown, at most 512 pixels a side."""
    preprocessing: Preprocessing
    """How the image became the network's input."""
    top: tuple[tuple[str, float], ...]
    """The most probable classes with their probabilities."""
    maps: tuple[HeatMap, ...]
    """The maps, the most important first."""

    def overlay(self, heat: HeatMap | None = None) -> Picture:
        """Return the image below one of its maps, the first unless another is named; dark where it was cropped."""
        heat = heat or self.maps[0]
        size = (self.picture.shape[0], self.picture.shape[1])
        placed = place(heat.values, self.preprocessing, self.image_size, size)
        return overlay(self.picture, placed, signed=is_signed(heat.method))

    def png(self) -> bytes:
        """Return the image and its overlays side by side."""
        pictures = [self.picture, *(self.overlay(heat) for heat in self.maps)]
        buffer = io.BytesIO()
        side_by_side(pictures, [Path(self.name).name, *(heat.title for heat in self.maps)]).save(buffer, "PNG")
        return buffer.getvalue()

    def to_dict(self) -> dict[str, Any]:
        """Return everything but pixels as plain values for JSON."""
        return {
            "image": self.name,
            "image_size": list(self.image_size),
            "seen": list(self.preprocessing.window(*self.image_size)),
            "top": [{"class": label, "probability": probability} for label, probability in self.top],
            "maps": [heat.to_dict() for heat in self.maps],
        }

    def __repr__(self) -> str:
        """Name the image and the explained classes."""
        return f"<Explanation of {self.name}: {'; '.join(heat.title for heat in self.maps)}>"

    def _repr_html_(self) -> str:
        """Show the image and its overlays, in a notebook."""
        address = f"data:image/png;base64,{base64.b64encode(self.png()).decode()}"
        return f'<img src="{address}" style="max-width:100%">'
