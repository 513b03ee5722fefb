"""What a model has learned without labels, as pictures: neighbours, attention, and completed images."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from vitrail.base.shapes import Pixels
from vitrail.report.markup import Html, tag, text
from vitrail.report.overlay import overlay, picture_of
from vitrail.report.plots import data_uri, picture_uri, thumbnail
from vitrail.report.section import Section, section

Map = Float[np.ndarray, "rows columns"]
SIDE = 96
"""Pixels of an image below its map."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Row:
    """Pictures that belong together, with a word below each."""

    pictures: Sequence[Pixels]
    words: Sequence[str]


def neighbours_section(rows: Sequence[Row]) -> Section:
    """Show images, each with those that are nearest to it by features."""
    note = "The first of each row, and the images whose features are nearest to its own."
    return _strips("Neighbours", note, [_row(row) for row in rows])


def completed_section(rows: Sequence[Row]) -> Section:
    """Show images, what the model saw of them, and how it completed them in the course of training."""
    note = (
        "Images that were not learned from, what the model sees of them, and its completions after more and more steps."
    )
    return _strips("Completed images", note, [_row(row) for row in rows])


def attention_section(images: Sequence[Pixels], maps: Sequence[Sequence[Map]]) -> Section:
    """Show what each head of the last block reads from, for the class token."""
    note = "The class token's attention in the last block, a picture for each head, from dark to bright."
    rows = []
    for image, heads in zip(images, maps, strict=True):
        picture = picture_of(image, SIDE)
        shown = [_image(data_uri(thumbnail(image)), "image", small=max(image.shape[1:]) <= 64)]
        for number, heat in enumerate(heads):
            placed = np.kron(heat, np.ones((-(-picture.shape[0] // len(heat)), -(-picture.shape[1] // heat.shape[1]))))
            seen = overlay(picture, placed[: picture.shape[0], : picture.shape[1]], signed=False)
            shown.append(_image(picture_uri(seen), f"head {number}"))
        rows.append(tag("div", *shown, class_="strip"))
    return _strips("Attention", note, rows)


def _strips(heading: str, note: str, rows: Sequence[Html]) -> Section:
    return section(heading, tag("p", text(note), class_="muted"), *rows)


def _row(row: Row) -> Html:
    images = [
        _image(data_uri(thumbnail(pixels)), words, small=max(pixels.shape[1:]) <= 64)
        for pixels, words in zip(row.pictures, row.words, strict=True)
    ]
    return tag("div", *images, class_="strip")


def _image(address: str, words: str, *, small: bool = False) -> Html:
    image = tag("img", src=address, alt=words, class_="few" if small else "")
    return tag("figure", image, tag("p", text(words), class_="muted"))
