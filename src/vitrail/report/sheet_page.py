"""The contact sheet of data as a page: classes, augmented images, and pairs that are the same picture."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from vitrail.base.files import atomic_write
from vitrail.base.shapes import Pixels
from vitrail.data.survey.sheet import Pair, Pairs, Picture, Sheet, SheetClass
from vitrail.report.markup import Html, join, name, number, section, tag, text
from vitrail.report.plots import data_uri, thumbnail
from vitrail.report.report import document, page_kind

FEW = 64
"""Pixels of the longer side up to which an image is enlarged in squares, to show its pixels."""
GENERATOR = "Vitrail contact sheet"
SHEET = page_kind("a contact sheet", GENERATOR)
_KINDS = {"exact": "same pixels", "near": "nearly the same, {:.3f}", "mirrored": "mirrored, {:.3f}"}


def render_sheet(sheet: Sheet, more: Sequence[Html] = ()) -> str:
    """Return the page as HTML, with more sections after its own."""
    parts = [tag("header", tag("h1", name(sheet.where)), tag("p", text(_summary(sheet)))), _classes(sheet)]
    if sheet.augmentation:
        parts.append(_augmented(sheet))
    parts += [*(_twice(pairs) for pairs in sheet.pairs), *more]
    parts.append(tag("footer", text("Made by Vitrail.")))
    return document(f"{sheet.where}: contact sheet", tag("main", *parts), generator=GENERATOR)


def write_sheet(sheet: Sheet, path: Path, more: Sequence[Html] = ()) -> None:
    """Write the page, whole or not at all."""
    page = render_sheet(sheet, more).encode()
    with atomic_write(path) as file:
        file.write(page)


def _summary(sheet: Sheet) -> str:
    if not sheet.total:
        return "Images without labels."
    count = len(sheet.classes)
    if count < sheet.total:
        return f"The {count} most frequent of {sheet.total:,} classes."
    return f"{count} classes." if count > 1 else "One class."


def _classes(sheet: Sheet) -> Html:
    note = f"Images of the {sheet.split} split at even distances, with the number of images in each split."
    rows = (
        _row(each, _counts(each), (_image(picture.pixels, _caption(picture)) for picture in each.examples))
        for each in sheet.classes
    )
    return section("Classes", tag("p", text(note), class_="muted"), tag("div", *rows, class_="strips"))


def _augmented(sheet: Sheet) -> Html:
    height, width = sheet.image_size
    note = (
        f"The first image of each class in the first six epochs of training: augmented {sheet.augmentation}, "
        f"to {height}x{width} pixels."
    )
    rows = (
        _row(each, "", (_image(pixels, f"epoch {at}") for at, pixels in enumerate(each.versions, 1)))
        for each in sheet.classes
        if each.versions
    )
    return section(
        "What training makes of them", tag("p", text(note), class_="muted"), tag("div", *rows, class_="strips")
    )


def _row(sheet_class: SheetClass, note: str, images: Iterable[Html]) -> Html:
    """Return the name of a class beside its images."""
    label = text("no label") if sheet_class.label is None else name(sheet_class.label)
    heading = tag("div", tag("h3", label), *([tag("p", text(note), class_="muted")] if note else []))
    return join((heading, tag("div", *images, class_="strip")))


def _counts(sheet_class: SheetClass) -> str:
    return ", ".join(f"{number(count)} {split}" for split, count in sheet_class.counts.items())


def _twice(pairs: Pairs) -> Html:
    more = pairs.total - len(pairs.pairs)
    rest = [tag("p", text(f"And {more:,} more."), class_="muted")] if more else []
    return section(pairs.title, tag("div", *map(_pair, pairs.pairs), class_="two"), *rest)


def _pair(pair: Pair) -> Html:
    note = _KINDS[pair.kind].format(pair.similarity)
    pictures = (pair.first, pair.second)
    images = tag("div", *(_image(picture.pixels, _caption(picture)) for picture in pictures), class_="strip")
    lines = [
        tag("p", name(_place(picture)), text(" "), tag("span", name(picture.name), class_="muted"))
        for picture in pictures
    ]
    return tag("figure", images, tag("div", *lines, tag("p", text(note), class_="muted")), class_="pair")


def _place(picture: Picture) -> str:
    return picture.split if picture.label is None else f"{picture.split}: {picture.label}"


def _caption(picture: Picture) -> str:
    return f"{_place(picture)}, {picture.name}"


def _image(pixels: Pixels, caption: str) -> Html:
    few = "few" if max(pixels.shape[1:]) <= FEW else ""
    return tag("img", src=data_uri(thumbnail(pixels)), alt=caption, title=caption, class_=few)
