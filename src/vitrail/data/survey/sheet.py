"""Contact sheets: the classes and what training makes of them, and the pairs that are the same picture."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageDraw, ImageOps

from vitrail.base.files import atomic_write
from vitrail.base.seeds import key, keys, uniform
from vitrail.base.shapes import Pixels
from vitrail.data.augment.apply import augment
from vitrail.data.augment.settings import Augmentation
from vitrail.data.dataset import UNLABELLED
from vitrail.data.survey.leaks import Twin
from vitrail.data.survey.lettering import fit, lettering
from vitrail.data.survey.scan import Survey, short_name

MOST_CLASSES = 24
MOST_PAIRS = 20
EXAMPLES = 6
VERSIONS = 6

CELL = 96  # pixels of a picture's side
GAP = 8
MARGIN = 24
NAMES = 190  # pixels of the column of names
INK, FAINT, LINE, PAPER = "#1a1a1a", "#767676", "#dddddd", "#ffffff"
_KINDS = {"exact": "same pixels", "near": "nearly the same, {:.3f}", "mirrored": "mirrored, {:.3f}"}
TITLE, TEXT, SMALL = 22, 15, 12  # pixels of letters


def class_sheet(
    survey: Survey, *, augmentation: Augmentation | None, image_size: tuple[int, int], seed: int = 0
) -> Image.Image:
    """Draw a row for each class: its name and counts, some images, and what training makes of the first in 6 epochs.

    The images are taken at even distances from the training split, or from the first one. The augmented versions are
    the very ones that training with this seed sees.
    """
    part = list(survey.splits).index("train") if "train" in survey.splits else 0
    labelled = bool(survey.labels)
    counts = np.bincount(survey.targets[survey.targets >= 0], minlength=len(survey.labels))
    shown = np.arange(len(counts)) if labelled else np.array([UNLABELLED])
    if len(shown) > MOST_CLASSES:
        shown = np.sort(np.argsort(-counts, kind="stable")[:MOST_CLASSES])
    versions = VERSIONS if augmentation else 0
    left = MARGIN + NAMES
    middle = left + EXAMPLES * (CELL + GAP) + 2 * GAP
    width = (middle + versions * (CELL + GAP) - GAP if versions else middle - 3 * GAP) + MARGIN
    top = MARGIN + TITLE + 2 * GAP + TEXT + 2 * GAP
    foot = _foot(survey, len(shown), augmentation, image_size)
    height = top + len(shown) * (CELL + GAP) + len(foot) * (SMALL + GAP) + MARGIN
    sheet = Image.new("RGB", (width, height), PAPER)
    draw = ImageDraw.Draw(sheet)
    _write(draw, (MARGIN, MARGIN), survey.where, TITLE, width - 2 * MARGIN)
    heads = MARGIN + TITLE + 2 * GAP
    _write(draw, (left, heads), f"images of {list(survey.splits)[part]}", TEXT, middle - left, FAINT)
    if versions:
        _write(draw, (middle, heads), "the first, in six epochs of training", TEXT, width - middle, FAINT)
    for number, target in enumerate(shown):
        y = top + number * (CELL + GAP)
        draw.line((MARGIN, y - GAP // 2, width - MARGIN, y - GAP // 2), fill=LINE)
        name = _name(survey.labels[target], int(target)) if labelled else "no label"
        _write(draw, (MARGIN, y + GAP), name, TEXT, NAMES - 2 * GAP)
        for line, (split, count) in enumerate(_counts(survey, int(target))):
            _write(
                draw, (MARGIN, y + GAP + (line + 1) * (TEXT + 5)), f"{count:,} {split}", SMALL, NAMES - 2 * GAP, FAINT
            )
        rows = _examples(survey, part, int(target))
        for place, row in enumerate(rows):
            _paste(sheet, survey.image(row), left + place * (CELL + GAP), y)
        if augmentation and rows:
            for place, pixels in enumerate(_versions(survey, rows[0], augmentation, image_size, seed)):
                _paste(sheet, pixels, middle + place * (CELL + GAP), y)
    for line, text in enumerate(foot):
        y = top + len(shown) * (CELL + GAP) + line * (SMALL + GAP) + GAP
        _write(draw, (MARGIN, y), text, SMALL, width - 2 * MARGIN, FAINT)
    return sheet


def pair_sheet(survey: Survey, twins: Sequence[Twin], title: str) -> Image.Image:
    """Draw the first pairs side by side, in two columns, each picture with its split, name and class."""
    shown = twins[:MOST_PAIRS]
    words = 250
    column = 2 * (CELL + GAP) + words
    rows = -(-len(shown) // 2)
    more = len(twins) - len(shown)
    top = MARGIN + TITLE + 3 * GAP
    width = 2 * MARGIN + (2 * column + 2 * GAP if len(shown) > 1 else column)
    height = top + rows * (CELL + 2 * GAP) + (SMALL + GAP) * bool(more) + MARGIN
    sheet = Image.new("RGB", (width, height), PAPER)
    draw = ImageDraw.Draw(sheet)
    _write(draw, (MARGIN, MARGIN), title, TITLE, width - 2 * MARGIN)
    for number, twin in enumerate(shown):
        x = MARGIN + number // rows * (column + 2 * GAP)
        y = top + number % rows * (CELL + 2 * GAP)
        for place, row in enumerate((twin.row, twin.other)):
            _paste(sheet, survey.image(row), x + place * (CELL + GAP), y)
            line = y + place * 39
            at = x + 2 * (CELL + GAP)
            label = survey.label(row)
            _write(draw, (at, line), survey.split(row) + (f": {label}" if label else ""), TEXT, words - GAP)
            _write(draw, (at, line + TEXT + 4), short_name(survey.name(row), survey.where), SMALL, words - GAP, FAINT)
        _write(draw, (at, y + CELL - SMALL - 2), _KINDS[twin.kind].format(twin.similarity), SMALL, words - GAP, FAINT)
    if more:
        _write(draw, (MARGIN, height - MARGIN - SMALL), f"and {more:,} more", SMALL, width - 2 * MARGIN, FAINT)
    return sheet


def save_sheet(parts: Sequence[Image.Image], path: Path) -> None:
    """Write pictures, one above the other, as a PNG that appears whole or not at all."""
    sheet = Image.new("RGB", (max(part.width for part in parts), sum(part.height for part in parts)), PAPER)
    y = 0
    for part in parts:
        sheet.paste(part, (0, y))
        y += part.height
    with atomic_write(path) as file:
        sheet.save(file, "PNG")


def _name(label: str, target: int) -> str:
    """Return a class name, with the number of the class where no font can draw the name."""
    shown, _ = lettering(label, TEXT)
    return label if "?" not in shown.replace("?", "", label.count("?")) else f"{target}: {label}"


def _counts(survey: Survey, target: int) -> list[tuple[str, int]]:
    """Count the images of a class in each split, as many splits as there is room for."""
    counts = [(split, int((dataset.targets == target).sum())) for split, dataset in survey.splits.items()]
    return counts[: (CELL - GAP - TEXT) // (TEXT + 5)]


def _examples(survey: Survey, part: int, target: int) -> list[int]:
    """Choose readable images of a class at even distances, from the given split or, if it has none, from all."""
    rows = np.flatnonzero((survey.targets == target) & survey.readable)
    rows = inside if len(inside := rows[survey.part[rows] == part]) else rows
    places = np.linspace(0, len(rows) - 1, min(EXAMPLES, len(rows))).round().astype(np.int64)
    return [int(row) for row in rows[places]]


def _versions(
    survey: Survey, row: int, augmentation: Augmentation, image_size: tuple[int, int], seed: int
) -> list[Pixels]:
    """Augment an image as the first epochs of training do."""
    pixels = survey.image(row)
    epochs = np.arange(VERSIONS)
    index = np.full_like(epochs, row - survey.starts[survey.part[row]])
    draws = uniform(keys(key(seed, "augment"), epochs, index), augmentation.draws).tolist()
    return [augment(pixels, augmentation, image_size, drawn) for drawn in draws]


def _paste(sheet: Image.Image, pixels: Pixels, x: int, y: int) -> None:
    """Put an image into its cell, whole and centred; small ones grow in squares, so that their pixels show."""
    image = _picture(pixels)
    sampling = Image.Resampling.NEAREST if max(image.size) <= CELL // 2 else Image.Resampling.LANCZOS
    image = ImageOps.contain(image, (CELL, CELL), sampling)
    sheet.paste(image, (x + (CELL - image.width) // 2, y + (CELL - image.height) // 2))


def _picture(pixels: Pixels) -> Image.Image:
    """Return an image of Pillow; of channels that are no colours, the first is shown."""
    colours = pixels if pixels.shape[0] == 3 else pixels[:1].expand(3, -1, -1)
    return Image.fromarray(colours.permute(1, 2, 0).contiguous().to(torch.uint8).numpy())


def _foot(survey: Survey, shown: int, augmentation: Augmentation | None, image_size: tuple[int, int]) -> list[str]:
    lines = []
    if shown < len(survey.labels):
        lines.append(f"The {shown} most frequent of {len(survey.labels):,} classes.")
    if augmentation:
        lines.append(f"Augmented {describe(augmentation)}, to {image_size[0]}x{image_size[1]} pixels.")
    return lines


def describe(augmentation: Augmentation) -> str:
    """Tell in words what an augmentation does."""
    crop = {
        "inception": f"by a crop of {augmentation.area[0]:.0%} to {augmentation.area[1]:.0%} of the image",
        "pad": f"by shifting up to {augmentation.pad} pixels",
        "none": "without a crop",
    }
    done = [crop[augmentation.crop]]
    done += [f"mirroring {augmentation.flip:.0%} of the time"] * (augmentation.flip > 0)
    done += ["changed colours"] * augmentation.jitters
    done += [f"RandAugment with {augmentation.layers} operations of magnitude {augmentation.magnitude:g}"] * (
        augmentation.layers > 0
    )
    done += [f"erasing a box {augmentation.erase:.0%} of the time"] * (augmentation.erase > 0)
    return ", ".join(done)


def _write(draw: ImageDraw.ImageDraw, at: tuple[int, int], text: str, size: int, width: int, colour: str = INK) -> None:
    shown, font = fit(text, size, width)
    draw.text(at, shown, font=font, fill=colour)
