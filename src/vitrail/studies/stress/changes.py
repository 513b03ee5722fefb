"""What a stress does to one image where that takes more than its pixels: draws, cells, and the order of these."""

import torch

from vitrail.analysis.faithfulness import Order, random_order
from vitrail.base.shapes import Pixels
from vitrail.data.stress.tiles import partly_shuffled, rearrange, shuffled
from vitrail.data.stress.views import rotate
from vitrail.studies.stress.stage import Subject

Level = int | float
"""How strong a stress is, in the unit of its axis."""


def _cover(subject: Subject, order: Order, share: Level) -> Pixels:
    cells = subject.stage.cells
    covered = torch.zeros(1, len(cells), dtype=torch.bool)
    covered[0, order[: round(share * len(cells))]] = True
    return cells.cover(subject.pixels[None], covered, subject.stage.colour)[0]


def cover_random(subject: Subject, share: Level) -> Pixels:
    """Cover a share of the cells, drawn at random."""
    stage = subject.stage
    return _cover(subject, random_order(len(stage.cells), stage.seed, "stress", "occlusion", subject.row), share)


def cover_salient(subject: Subject, share: Level) -> Pixels:
    """Cover a share of the cells, the most salient first."""
    assert subject.order is not None  # noqa: S101 - the test states that it needs it
    return _cover(subject, subject.order, share)


def cover_background(subject: Subject, share: Level) -> Pixels:
    """Cover a share of the cells, the least salient first."""
    assert subject.order is not None  # noqa: S101 - the test states that it needs it
    return _cover(subject, subject.order.flip(0), share)


def shuffle(subject: Subject, tiles: Level) -> Pixels:
    """Cut into tiles along each side, and put all of them into another order."""
    count = int(tiles)
    return rearrange(subject.pixels, (count, count), shuffled(count**2, subject.draws(f"shuffle {count}")))


def permute(subject: Subject, share: Level) -> Pixels:
    """Let a share of the patches change places."""
    grid = subject.stage.cells.grid
    return rearrange(subject.pixels, grid, partly_shuffled(grid[0] * grid[1], share, subject.draws("grid")))


def turn(subject: Subject, degrees: Level) -> Pixels:
    """Turn to the left or right, by a draw."""
    left = subject.draws("rotation").uniform("side", 1)[0] < 0.5
    return rotate(subject.pixels, float(degrees if left else -degrees))
