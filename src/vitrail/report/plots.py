"""Pictures: curves as SVG, confusions and small images as PNG."""

import base64
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, UInt8
from PIL import Image

from vitrail.base.scores import Confusion
from vitrail.base.shapes import Pixels
from vitrail.report.markup import Html
from vitrail.report.series import Series, smooth, thin
from vitrail.report.svg import PAINTS, inline_svg, page_style

if TYPE_CHECKING:
    import matplotlib.axes

Shares = Float[np.ndarray, "truth answer"]

HIT = (37, 99, 235)
"""Red, green and blue of right answers."""
MISS = (220, 68, 40)
"""Red, green and blue of wrong answers."""
NOISY = 120
"""From this many points, a noisy curve is drawn faintly behind its own average."""
FEW = 60
"""The most points that are drawn as dots."""
MOST_CELLS = 250
"""Rows and columns of the largest heat map; more classes share a cell."""
MOST_SIDE = 128
"""Pixels of the longer side of a small image."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Line:
    """One curve of a chart."""

    points: Series
    """Its points."""
    role: str
    """Its colour, one of `svg.PAINTS`."""
    dots: bool = False
    """Whether points are drawn as dots while they are few."""
    noisy: bool = False
    """Whether a long curve is drawn faintly, with its average in front."""


def line_chart(
    lines: Sequence[Line],
    *,
    name: str,
    description: str,
    axis: Callable[[float], str],
    last_step: float,
    log: bool = False,
) -> Html:
    """Draw curves over the steps of a run; their names stand beside the chart, in the page."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

    with page_style():
        figure = Figure(figsize=(400 / 72, 216 / 72))
        axes = figure.add_axes((0.115, 0.115, 0.87, 0.855))
        for line in lines:
            _draw(axes, line)
        axes.set_xlim(0, max(last_step, 1.0) * 1.015)
        axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda step, _: compact(step)))
        if log:
            axes.set_yscale("log")
            axes.yaxis.set_major_locator(LogLocator(numticks=6))
            axes.yaxis.set_minor_locator(NullLocator())
        else:
            axes.yaxis.set_major_locator(MaxNLocator(nbins=5))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: axis(value)))
        dress(axes)
        return inline_svg(figure, name, description)


def dress(axes: "matplotlib.axes.Axes", colours: Mapping[str, str] = PAINTS) -> None:
    """Style a chart like the page: a faint grid, and a line below."""
    axes.tick_params(length=0, pad=5)
    axes.grid(True, color=colours["grid"], linewidth=0.7)
    axes.set_axisbelow(True)
    axes.spines[["top", "left", "right"]].set_visible(False)
    axes.spines["bottom"].set_color(colours["muted"])


def _draw(axes: "matplotlib.axes.Axes", line: Line) -> None:
    colour, points = PAINTS[line.role], thin(line.points)
    if line.noisy and len(line.points) >= NOISY:
        axes.plot(points.steps, points.values, color=colour, linewidth=0.8, alpha=0.28, zorder=2)
        points = smooth(line.points)
    dotted = len(points) == 1 or (line.dots and len(points) <= FEW)
    marker = "o" if dotted else ""
    axes.plot(points.steps, points.values, color=colour, linewidth=1.7, marker=marker, markersize=4, zorder=3)


def compact(value: float) -> str:
    """Write a number of an axis in few letters."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size * 0.9999:
            return f"{value / size:.4g}{letter}"
    if 0 < abs(value) < 0.0095:
        mantissa, exponent = f"{value:.3e}".split("e")
        return f"{float(mantissa):g}e{int(exponent)}"
    return f"{value:.4g}"


def strengths(confusion: Confusion) -> Shares:
    """Return the opacity of each cell: the root of its share of the row, which makes rare mistakes visible."""
    support = confusion.sum(axis=1, dtype=np.int64, keepdims=True)
    return np.sqrt(confusion / np.maximum(support, 1))


def heat_map(confusion: Confusion) -> bytes:
    """Return the matrix as a PNG without a background: right answers in one colour, wrong ones in another.

    With more than 250 classes a cell shows the strongest of the confusions that share it.
    """
    strength = strengths(confusion)
    cells = np.linspace(0, strength.shape[0], min(strength.shape[0], MOST_CELLS) + 1).astype(np.int64)[:-1]
    strength = np.maximum.reduceat(np.maximum.reduceat(strength, cells, axis=0), cells, axis=1)
    picture = np.empty((*strength.shape, 4), dtype=np.uint8)
    picture[..., :3] = np.where(np.eye(strength.shape[0], dtype=bool)[..., None], HIT, MISS)
    picture[..., 3] = np.rint(255 * strength)
    return _png(Image.fromarray(picture, "RGBA"))


def thumbnail(pixels: Pixels) -> bytes:
    """Return a PNG of at most 128 pixels a side; an image that is neither grey nor colour shows its first channel."""
    array = pixels.numpy(force=True)
    if array.shape[0] >= 3:
        image = Image.fromarray(np.ascontiguousarray(array[:3].transpose(1, 2, 0)), "RGB")
    else:
        image = Image.fromarray(np.ascontiguousarray(array[0]), "L")
    if max(image.size) > MOST_SIDE:
        image.thumbnail((MOST_SIDE, MOST_SIDE), Image.Resampling.LANCZOS)
        if image.mode == "RGB":  # a photo of 256 colours takes half the bytes and looks the same at this size
            image = image.quantize(256, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.FLOYDSTEINBERG)
    return _png(image)


def data_uri(image: bytes, kind: str = "png") -> str:
    """Return an encoded image as a data address."""
    return f"data:image/{kind};base64,{base64.b64encode(image).decode()}"


def picture_uri(picture: UInt8[np.ndarray, "height width 3"]) -> str:
    """Return a picture in colour as a data address; JPEG, since a page may have hundreds of them."""
    out = io.BytesIO()
    Image.fromarray(picture, "RGB").save(out, "JPEG", quality=88, subsampling=0)
    return data_uri(out.getvalue(), "jpeg")


def _png(image: Image.Image) -> bytes:
    out = io.BytesIO()
    image.save(out, "PNG", optimize=True)
    return out.getvalue()
