"""placeholder until the branch batches has it."""

import numpy as np


def class_weights(counts):
    inverse = 1 / np.maximum(counts, 1)
    return inverse / inverse.mean()


def fraction_of(dataset, fraction, seed):
    return dataset


def stratified_split(dataset, fraction, seed):
    import numpy as np

    pick = np.arange(len(dataset)) % int(1 / fraction) == 0
    return dataset.take(np.flatnonzero(~pick)), dataset.take(np.flatnonzero(pick))
