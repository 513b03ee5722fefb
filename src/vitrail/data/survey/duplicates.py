"""Images that are there twice: the same pixels, or the same picture saved, resized or mirrored again.

Two images are *exact* duplicates when their decoded pixels are the same, whatever their files look like. They are
*near* duplicates when they pass two tests. Both look at the image in grey, averaged down to 32 x 32:

1. a hash of 63 bits, the signs of the lowest 8 x 8 frequencies of its cosine transform without the mean. Brightness
   and contrast do not change it, and mirroring flips the bits of the odd frequencies, so that a mirrored copy is found
   without a second hash. Few bits may differ (`NEAR_BITS`);
2. its detail, the Laplacian at 16 x 16, of which square roots are taken so that a faint pattern counts beside a sharp
   outline. Two shirts have the same outline and pass the first test; their details correlate less than `SIMILAR`.

Pairs are found without comparing everything with everything: among four bands of 16 bits, two hashes that differ in d
bits must share one up to d // 4 bits.
"""

import hashlib
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Float32, Int, Int8, UInt8, UInt64

from vitrail.base.shapes import Pixels

NEAR_BITS = 7
"""Bits of 63 in which the hashes of near duplicates may differ."""
SIMILAR = 0.985
"""The least correlation of the details of near duplicates."""
MOST_BITS = 11
"""More bits than this make the search slow and find nothing that the second test lets through."""

SIDE = 32
FREQUENCIES = 8
DETAIL = 16
BANDS = 4
BAND_BITS = 16
CERTAIN = 0.995  # an image with a twin like this needs no other
FLAT = 2.0  # grey levels: where no detail is larger, there is nothing to compare
CHUNK = 1 << 16  # pairs in memory at a time
ROWS = 512  # of an image in floats at a time
LUMA = (0.299, 0.587, 0.114)


Numbers = Int[np.ndarray, "image"]
Hashes = UInt64[np.ndarray, "image"]
Mask = Bool[np.ndarray, "image"]
Places = Int[np.ndarray, "pair"]
Scores = Float[np.ndarray, "pair"]


class Print(NamedTuple):
    """The fingerprints of images."""

    digest: int
    hash: int
    detail: Int8[np.ndarray, "side side"] | None
    """None for a flat image, which resembles every other flat image."""


def _cosines() -> Float32[np.ndarray, "frequency pixel"]:
    frequency, pixel = np.arange(FREQUENCIES)[:, None], np.arange(SIDE)[None]
    return np.cos(np.pi * frequency * (2 * pixel + 1) / (2 * SIDE)).astype(np.float32)


def _bends() -> Float32[np.ndarray, "side side"]:
    """Return the matrix of second differences; beyond the edge the image continues with its last values."""
    bends = 2 * np.eye(DETAIL) - np.eye(DETAIL, k=1) - np.eye(DETAIL, k=-1)
    bends[0, 0] = bends[-1, -1] = 1
    return bends.astype(np.float32)


COSINES = _cosines()
MEANS = np.kron(np.eye(DETAIL), np.full((1, SIDE // DETAIL), DETAIL / SIDE)).astype(np.float32)
BENDS = _bends()  # from above and below, and from both sides, they make the Laplacian
WEIGHTS = 2 ** np.arange(FREQUENCIES**2, dtype=np.uint64)
MIRROR = np.uint64(int(WEIGHTS.reshape(FREQUENCIES, FREQUENCIES)[:, 1::2].sum()))
"""The bits that change when an image is mirrored: the frequencies that are odd from left to right."""


def fingerprint(pixels: Pixels, *, near: bool = True) -> Print:
    """Return the fingerprint of an image, exact and, on request, approximate."""
    values = pixels.permute(1, 2, 0).numpy()  # as it is in memory
    digest = hashlib.blake2b(repr(values.shape).encode(), digest_size=8)
    digest.update(np.ascontiguousarray(values).data)
    exact = int.from_bytes(digest.digest(), "little")
    if not near:
        return Print(exact, 0, None)
    small = _shrink(values)
    spectrum = COSINES @ (small - small.mean()) @ COSINES.T
    spectrum[0, 0] = 0  # the mean carries no information about the picture
    cells = MEANS @ small @ MEANS.T
    detail = BENDS @ cells + cells @ BENDS.T
    largest = float(np.abs(detail).max())
    bits = int(WEIGHTS[(spectrum > 0).ravel()].sum())
    if largest < FLAT:
        return Print(exact, bits, None)
    return Print(exact, bits, np.round(np.sign(detail) * np.sqrt(np.abs(detail) / largest) * 127).astype(np.int8))


def _shrink(values: UInt8[np.ndarray, "height width channel"]) -> Float32[np.ndarray, "side side"]:
    """Make a small grey image, in which every pixel counts by the area that it covers."""
    height, width, channels = values.shape
    rows = _areas(height)
    low = np.zeros((SIDE, width * channels), dtype=np.float32)
    for start in range(0, height, ROWS):  # floats take four times the memory: never of the whole image
        block = values[start : start + ROWS].reshape(-1, width * channels)
        low += rows[:, start : start + ROWS] @ block.astype(np.float32)
    shares = np.array(LUMA if channels == 3 else (1 / channels,) * channels, dtype=np.float32)
    return (low.reshape(SIDE, width, channels) @ shares) @ _areas(width).T


@lru_cache(maxsize=64)
def _areas(length: int) -> Float32[np.ndarray, "side pixel"]:
    """Return how much of each of `length` pixels lies in each of the cells of a side, as a mean."""
    edges = np.linspace(0, length, SIDE + 1)
    pixel = np.arange(length)
    share = np.minimum(edges[1:, None], pixel + 1) - np.maximum(edges[:-1, None], pixel)
    return (share.clip(0) * SIDE / length).astype(np.float32)


@dataclass(frozen=True, kw_only=True, eq=False)
class Prints:
    """The prints of many images as compact arrays, 272 bytes for each."""

    digests: Hashes
    hashes: Hashes
    details: Int8[np.ndarray, "compared side side"]
    """Of all images, or of none where only exact duplicates are searched."""
    comparable: Mask
    """Whether an image can be a near duplicate: it was read, and is not flat."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Twins:
    """For each image, the nearest of its near duplicates in each part of the data."""

    partner: Int[np.ndarray, "image part"]
    """The number of the nearest image in that part, or -1."""
    similarity: Float32[np.ndarray, "image part"]
    """Correlation of the details, up to 1."""
    mirrored: Bool[np.ndarray, "image part"]
    """Whether it is the other way round."""


def near_duplicates(prints: Prints, part: Numbers, parts: int, bits: int = NEAR_BITS) -> Twins:
    """Find the near duplicates that are not exact ones, in each of the parts (such as training and test).

    Copies of the same pixels in the same part are compared once and share the result.
    """
    comparable = np.flatnonzero(prints.comparable)
    keys = np.stack([prints.digests[comparable], part[comparable].astype(np.uint64)], axis=1)
    _, first, group = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    chosen = comparable[first]
    partner = np.full((len(chosen), parts), -1, dtype=np.int64)
    similarity = np.zeros((len(chosen), parts), dtype=np.float32)
    mirrored = np.zeros((len(chosen), parts), dtype=bool)
    for flip in (False, True):
        for one, other in _candidates(prints.hashes[chosen], MIRROR if flip else np.uint64(0), bits):
            open_pairs = prints.digests[chosen[one]] != prints.digests[chosen[other]]
            best = np.minimum(similarity[one, part[chosen[other]]], similarity[other, part[chosen[one]]])
            open_pairs &= best < CERTAIN  # a thousand frames of one scene need not all be compared with each other
            one, other = one[open_pairs], other[open_pairs]
            scores = _correlation(prints.details[chosen[one]], prints.details[chosen[other]], flip)
            alike = scores >= SIMILAR
            one, other, scores = one[alike], other[alike], scores[alike]
            for from_, to in ((one, other), (other, one)):
                order = np.lexsort((-to, scores))  # the last to be written wins: the nearest, and the first of those
                from_, to, score = from_[order], to[order], scores[order]
                column = part[chosen[to]]
                better = score > similarity[from_, column]
                from_, to, score, column = from_[better], to[better], score[better], column[better]
                partner[from_, column] = chosen[to]
                similarity[from_, column] = score
                mirrored[from_, column] = flip
    full = (len(prints.hashes), parts)
    twins = Twins(
        partner=np.full(full, -1, dtype=np.int64),
        similarity=np.zeros(full, dtype=np.float32),
        mirrored=np.zeros(full, dtype=bool),
    )
    group = group.reshape(-1)
    twins.partner[comparable] = partner[group]
    twins.similarity[comparable] = similarity[group]
    twins.mirrored[comparable] = mirrored[group]
    return twins


def _candidates(hashes: Hashes, flip: np.uint64, bits: int) -> Iterator[tuple[Places, Places]]:
    """Yield every pair of images whose hashes differ in at most `bits` bits, once, a chunk at a time."""
    radius = bits // BANDS
    ours, theirs = _bands(hashes), _bands(hashes ^ flip)
    for band in range(BANDS):
        order = np.argsort(theirs[band], kind="stable")
        starts = np.concatenate([[0], np.cumsum(np.bincount(theirs[band], minlength=1 << BAND_BITS))])
        for change in _changes(radius):
            bucket = ours[band] ^ change
            for one, at in _ranges(starts[bucket], starts[bucket + 1]):
                other = order[at]
                near = (one < other) & (np.bitwise_count(hashes[one] ^ hashes[other] ^ flip) <= bits)
                one, other = one[near], other[near]
                for earlier in range(band):  # a pair of an earlier band is not listed again
                    new = np.bitwise_count(ours[earlier][one] ^ theirs[earlier][other]) > radius
                    one, other = one[new], other[new]
                if len(one):
                    yield one, other


def _bands(hashes: Hashes) -> list[Numbers]:
    mask = np.uint64((1 << BAND_BITS) - 1)
    return [((hashes >> np.uint64(band * BAND_BITS)) & mask).astype(np.int64) for band in range(BANDS)]


def _changes(most: int) -> list[int]:
    """List every change of at most `most` bits of a band."""
    return [
        sum(1 << bit for bit in bits)
        for count in range(most + 1)
        for bits in itertools.combinations(range(BAND_BITS), count)
    ]


def _ranges(start: Numbers, stop: Numbers) -> Iterator[tuple[Places, Places]]:
    """Yield (image, position) for every position from its start to its stop, a chunk at a time."""
    ends = np.cumsum(stop - start)
    low = 0
    while low < len(ends):
        before = ends[low - 1] if low else 0
        high = max(low + 1, int(np.searchsorted(ends, before + CHUNK, side="right")))
        image = np.repeat(np.arange(low, high), (stop - start)[low:high])
        yield image, np.arange(len(image)) + (stop[image] - (ends[image] - before))
        low = high


def _correlation(
    ours: Int8[np.ndarray, "pair side side"], theirs: Int8[np.ndarray, "pair side side"], flip: bool
) -> Scores:
    one, other = ours.astype(np.float32), (theirs[:, :, ::-1] if flip else theirs).astype(np.float32)
    product = "nij,nij->n"
    return np.einsum(product, one, other) / np.sqrt(np.einsum(product, one, one) * np.einsum(product, other, other))
