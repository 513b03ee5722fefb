"""Masked patch prediction (App. B.1.2), written out in NumPy pixel by pixel."""

import math
from fractions import Fraction

import numpy as np


def shares(corrupted):
    """How many of the corrupted patches are masked, exchanged and left: 80%, and halves of what remains."""
    exact = Fraction(8, 10) * corrupted
    masked = math.floor(exact)
    rest = exact - masked
    if rest > Fraction(1, 2) or (rest == Fraction(1, 2) and masked % 2):
        masked += 1
    exchanged = math.ceil(Fraction(corrupted - masked, 2))
    return masked, exchanged, corrupted - masked - exchanged


def corrupt(patches, mask, masked, replaced, sources):
    """Put [mask] and other embeddings in their places, one image and patch after the other."""
    result = patches.copy()
    for image in range(len(patches)):
        for patch in masked[image]:
            result[image, patch] = mask
        for patch, source in zip(replaced[image], sources[image], strict=True):
            result[image, patch] = patches[image, source]
    return result


def classes(patch, cells):
    """The class of each cell of one patch of channel x height x width, for each three channels."""
    channels, height, width = patch.shape
    found = []
    for row in range(cells):
        for column in range(cells):
            top, bottom = row * height // cells, math.ceil((row + 1) * height / cells)
            left, right = column * width // cells, math.ceil((column + 1) * width / cells)
            bins = []
            for channel in range(channels):
                pixels = [int(value) for value in patch[channel, top:bottom, left:right].ravel()]
                bins.append(math.floor(Fraction(sum(pixels), len(pixels)) / 32))
            codes = []
            for first in range(0, channels, 3):
                code = 0
                for value in bins[first : first + 3]:
                    code = 8 * code + value
                codes.append(code)
            found.append(codes)
    return np.array(found)


def cross_entropy(logits, wanted):
    """-log softmax(logits)[wanted] of one vector."""
    largest = logits.max()
    return float(largest + np.log(np.exp(logits - largest).sum()) - logits[wanted])


def colour_loss(predicted, wanted, channels):
    """The mean over patches and cells, the sum over groups of channels; predicted: patch x outputs."""
    sizes = [8 ** min(3, channels - first) for first in range(0, channels, 3)]
    losses = []
    for outputs, codes in zip(predicted, wanted, strict=True):
        for cell, logits in zip(codes, outputs.reshape(len(codes), -1), strict=True):
            start = 0
            total = 0.0
            for size, code in zip(sizes, cell, strict=True):
                total += cross_entropy(logits[start : start + size], code)
                start += size
            losses.append(total)
    return float(np.mean(losses))
