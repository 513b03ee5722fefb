"""What a panel shows: pictures of small images in a grid, and tables of numbers in colours; each is a file too."""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from jaxtyping import Float
from PIL import Image

from vitrail.base.printable import printable
from vitrail.report.charts import Chart
from vitrail.report.markup import Html, tag, text
from vitrail.report.overlay import Picture
from vitrail.report.plots import data_uri
from vitrail.report.svg import inline_svg, page_style

if TYPE_CHECKING:
    import matplotlib.figure

SIDE = 480
"""Pixels of the longer side that small pictures grow to, by whole factors."""
NUMBERED = 12
"""Up to this number of rows and columns, a matrix has its numbers in its cells."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Tiles:
    """Small pictures beside and below each other, with a thin gap."""

    title: str
    picture: Picture

    def html(self, name: str) -> Html:  # noqa: ARG002 - as a chart has it
        """Return the picture as part of a page."""
        image = tag("img", src=data_uri(self.png()), alt=self.title, class_="tiles-picture")
        return tag("figure", tag("figcaption", tag("h3", text(self.title))), image)

    def png(self) -> bytes:
        """Return the picture as a file."""
        drawn = io.BytesIO()
        Image.fromarray(self.picture, "RGB").save(drawn, "PNG", optimize=True)
        return drawn.getvalue()


@dataclass(frozen=True, kw_only=True, eq=False)
class Matrix:
    """A table of numbers as colours."""

    title: str
    values: Float[np.ndarray, "row column"]
    """NaN is left blank."""
    x_label: str
    y_label: str
    x_names: Sequence[str]
    y_names: Sequence[str]
    low: float | None = 0.0
    high: float | None = 1.0

    def html(self, name: str) -> Html:
        """Return the table as part of a page."""
        with page_style():
            drawing = inline_svg(self.figure("#6a6f7b"), name, f"{self.title}: {self.y_label} by {self.x_label}")
        return tag("figure", tag("figcaption", tag("h3", text(self.title))), drawing)

    def file(self, kind: Literal["png", "svg"]) -> bytes:
        """Return the table as a file."""
        with page_style():
            figure = self.figure("#1c1e24")
            figure.suptitle(printable(self.title), fontsize=10, parse_math=False)
            drawn = io.BytesIO()
            figure.savefig(drawn, format=kind, dpi=150, metadata={"Date": None} if kind == "svg" else None)
        return drawn.getvalue()

    def figure(self, ink: str) -> "matplotlib.figure.Figure":
        """Draw the table, the first row at the bottom, with a scale beside it."""
        from matplotlib.figure import Figure

        figure = Figure(figsize=(5.2, 4.2), layout="constrained")
        axes = figure.add_subplot()
        colours = axes.pcolormesh(np.ma.masked_invalid(self.values), vmin=self.low, vmax=self.high, cmap="viridis")
        for axis, names in ((axes.xaxis, self.x_names), (axes.yaxis, self.y_names)):
            step = -(-len(names) // 14)
            axis.set_ticks(np.arange(0, len(names), step) + 0.5, [printable(name) for name in names[::step]])
        axes.tick_params(length=0, colors=ink)
        axes.set_xlabel(self.x_label, color=ink)
        axes.set_ylabel(self.y_label, color=ink)
        axes.spines[:].set_visible(False)
        if max(self.values.shape) <= NUMBERED:
            self._write(axes, colours)
        bar = figure.colorbar(colours, ax=axes)
        bar.ax.tick_params(colors=ink, length=0)
        bar.outline.set_visible(False)
        return figure

    def _write(self, axes: "matplotlib.axes.Axes", colours: "matplotlib.collections.QuadMesh") -> None:
        """Write each number into its cell, dark on bright colours."""
        for (row, column), value in np.ndenumerate(self.values):
            if np.isfinite(value):
                bright = sum(colours.to_rgba(value)[:3]) > 1.6
                colour = "#1c1e24" if bright else "#ffffff"
                axes.text(column + 0.5, row + 0.5, f"{value:.2f}", ha="center", va="center", fontsize=7, color=colour)


Drawing = Chart | Tiles | Matrix


def drawing_files(drawing: Drawing) -> dict[str, bytes]:
    """Return a drawing as files, by their suffix: PNG, and SVG where it is made of lines."""
    if isinstance(drawing, Tiles):
        return {".png": drawing.png()}
    write = drawing.picture if isinstance(drawing, Chart) else drawing.file
    return {".png": write("png"), ".svg": write("svg")}


def coloured(values: Float[np.ndarray, "*shape"], low: float, high: float) -> np.ndarray:
    """Return numbers as colours, from dark blue to yellow."""
    from matplotlib import colormaps

    share = np.clip((values - low) / (high - low), 0, 1)
    return np.rint(255 * colormaps["viridis"](share)[..., :3]).astype(np.uint8)


def tiled(pictures: Sequence[np.ndarray], columns: int, gap: int = 1) -> Picture:
    """Put pictures of one size into a grid on white, and enlarge it by a whole factor."""
    height, width = pictures[0].shape[:2]
    rows = -(-len(pictures) // columns)
    sheet = np.full((rows * (height + gap) - gap, columns * (width + gap) - gap, 3), 255, np.uint8)
    for number, picture in enumerate(pictures):
        top, left = number // columns * (height + gap), number % columns * (width + gap)
        sheet[top : top + height, left : left + width] = picture
    factor = max(SIDE // max(sheet.shape), 1)
    return sheet.repeat(factor, axis=0).repeat(factor, axis=1)


def padded(pictures: Sequence[Picture]) -> list[Picture]:
    """Bring pictures to one size, with white below and to the right."""
    height, width = (max(picture.shape[axis] for picture in pictures) for axis in (0, 1))
    sizes = [((0, height - picture.shape[0]), (0, width - picture.shape[1]), (0, 0)) for picture in pictures]
    return [np.pad(picture, size, constant_values=255) for picture, size in zip(pictures, sizes, strict=True)]


def filter_pictures(directions: Float[np.ndarray, "component channel height width"]) -> list[np.ndarray]:
    """Return each component as an image, scaled to its own range; other than 3 channels are shown by the first."""
    pictures = []
    for direction in directions:
        shown = direction if len(direction) == 3 else direction[:1].repeat(3, axis=0)
        low, high = shown.min(), shown.max()
        scaled = (shown - low) / (high - low) if high > low else np.full_like(shown, 0.5)
        pictures.append(np.rint(255 * scaled.transpose(1, 2, 0)).astype(np.uint8))
    return pictures
