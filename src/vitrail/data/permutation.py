"""A shuffle that is never stored: where position 7 of epoch 3 goes, in constant time and without the other positions.

A Feistel network on a rectangle of at least `length` cells: each position is a column and a row, each round moves
one of them by a keyed function of the other, and a cell outside of the range walks on until it is inside. Every round
can be undone, so every key gives a permutation.
"""

import numpy as np
from jaxtyping import Int64

from vitrail.base.seeds import GAMMA, Keys, mix

Positions = Int64[np.ndarray, "position"]

ROUNDS = 16  # 14 pass the chi-square tests on every permutation of 2 to 6; two more cost microseconds
ROUND_KEYS = mix(np.arange(1, ROUNDS + 1, dtype=np.uint64))


def permute(positions: Positions, lengths: Positions, keys: Keys) -> Positions:
    """Send each position of `range(length)` to its place in the permutation that its key names."""
    return _walk(positions, lengths, keys, range(ROUNDS), +1)


def unpermute(places: Positions, lengths: Positions, keys: Keys) -> Positions:
    """Undo `permute`: find the position that was sent to each place."""
    return _walk(places, lengths, keys, range(ROUNDS - 1, -1, -1), -1)


def _walk(positions: Positions, lengths: Positions, keys: Keys, rounds: range, sign: int) -> Positions:
    """Run the network until every cell is inside its range; a step or two, as the rectangle is hardly larger."""
    places = _rounds(positions, lengths, keys, rounds, sign)
    while (outside := np.flatnonzero(places >= lengths)).size:
        places[outside] = _rounds(places[outside], lengths[outside], keys[outside], rounds, sign)
    return places


def _rounds(positions: Positions, lengths: Positions, keys: Keys, rounds: range, sign: int) -> Positions:
    """Move along columns and rows in turn, within the smallest near-square rectangle that holds the range."""
    columns = np.ceil(np.sqrt(lengths)).astype(np.int64)
    rows = -(-lengths // columns)
    row, column = np.divmod(positions, columns)
    for number in rounds:
        along, across, size = (column, row, columns) if number % 2 else (row, column, rows)
        bits = mix(keys + ROUND_KEYS[number] + across.astype(np.uint64) * GAMMA)
        shift = (bits >> np.uint64(33)).astype(np.int64) * size >> 31  # no side has 2^31 cells
        along = (along + sign * shift) % size
        row, column = (across, along) if number % 2 else (along, across)
    return row * columns + column
