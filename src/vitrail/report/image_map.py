"""A map of images on a page: a dot for each in the colour of its class, and the image when the pointer is on it.

Nothing is run: the style sheet shows what is under the pointer, or has the focus of the keyboard.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from vitrail.base.shapes import Pixels
from vitrail.report.markup import Html, name, section, tag, text
from vitrail.report.overlay import picture_of
from vitrail.report.plots import picture_uri

STORED = 72
"""Pixels of the longer side of an image in the page, which may have a thousand of them."""
MOST_NAMED = 24
"""Classes with a colour of their own in the list."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Dot:
    """An image on the map."""

    pixels: Pixels
    words: str
    """Its class and name."""
    group: int
    """The number of its class, or -1."""
    doubtful: bool = False
    """Whether it has a ring, as its label is in doubt."""


def image_map(places: Float[np.ndarray, "point 2"], dots: Sequence[Dot], groups: Sequence[str], note: str) -> Html:
    """Return the section with the map."""
    low, high = places.min(0), places.max(0)
    shares = (places - low) / np.maximum(high - low, 1e-9)
    marks = [_dot(float(x), float(y), dot, len(groups)) for (x, y), dot in zip(shares, dots, strict=True)]
    keys = [
        tag("span", tag("i", style=f"background:{colour(number, len(groups))}"), name(group), class_="key")
        for number, group in enumerate(groups[:MOST_NAMED])
    ]
    keys += [tag("span", text(f"and {len(groups) - MOST_NAMED} more"), class_="key")] * (len(groups) > MOST_NAMED)
    return section(
        "A map of the images",
        tag("p", text(note), class_="muted"),
        tag("p", *keys, class_="keys"),
        tag("div", tag("div", *marks), class_="map"),
    )


def colour(group: int, groups: int) -> str:
    """Return the colour of a class: hues at even distances, every second one darker; grey without a class."""
    if group < 0:
        return "#8a8f99"
    return f"hsl({360 * group / max(groups, 1):.0f} 70% {44 if group % 2 else 56}%)"


def _dot(x: float, y: float, dot: Dot, groups: int) -> Html:
    """Return a dot at shares of the width and height; its image opens towards the middle."""
    sides = f"{'right' if x > 0.5 else 'left'} {'bottom' if y > 0.5 else 'top'}{' doubtful' if dot.doubtful else ''}"
    place = f"left:{100 * x:.2f}%;top:{100 * y:.2f}%;background:{colour(dot.group, groups)}"
    picture = tag("img", src=picture_uri(picture_of(dot.pixels, STORED)), alt="")
    return tag(
        "span", picture, style=place, class_=sides, title=dot.words, tabindex="0", role="img", aria_label=dot.words
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class DoubtfulImage:
    """An image whose label is in doubt."""

    pixels: Pixels
    name: str
    label: str
    other: str
    """The class that its features speak for."""


def doubtful_images(images: Sequence[DoubtfulImage], total: int, model: str) -> Html:
    """Return the section with the images whose labels deserve a look."""
    words = (
        f"Images whose label the features of {model} contradict, the most doubtful first: their label, and the class "
        "that they look like. A reason to look, not a verdict."
    )
    rest = [tag("p", text(f"And {total - len(images):,} more."), class_="muted")] * (total > len(images))
    note = tag("p", text(words), class_="muted")
    return section("Labels in doubt", note, tag("div", *map(_doubtful, images), class_="gallery"), *rest)


def _doubtful(image: DoubtfulImage) -> Html:
    picture = tag("img", src=picture_uri(picture_of(image.pixels, 128)), alt=f"{image.name}: {image.label}")
    label = tag("p", tag("span", name(image.label), class_="wrong"), Html("<br>"), text("or "), name(image.other))
    return tag("figure", picture, label, tag("p", name(image.name), class_="file"))
