"""What looking inside computes, in NumPy, from the equations of the papers."""

import itertools

import numpy as np


def rollout(maps: list[np.ndarray]) -> np.ndarray:
    """A~ = 0.5 A + 0.5 I with A the mean over heads; the product, the last block leftmost (Abnar and Zuidema, 2020)."""
    result = None
    for heads in maps:  # head query key
        mixed = 0.5 * heads.mean(axis=0) + 0.5 * np.eye(heads.shape[-1])
        mixed = mixed / mixed.sum(axis=-1, keepdims=True)
        result = mixed if result is None else mixed @ result
    return result


def relevance(maps: list[np.ndarray], slopes: list[np.ndarray]) -> np.ndarray:
    """R = I; R = R + mean over heads of (slope * A)+ times R (Chefer et al., 2021, Eq. 5 and 6)."""
    result = np.eye(maps[0].shape[-1])
    for attention, slope in zip(maps, slopes, strict=True):
        result = result + np.maximum(slope * attention, 0).mean(axis=0) @ result
    return result


def unbiased_cka(first: np.ndarray, second: np.ndarray) -> float:
    """HSIC is the mean of K_ij (L_ij + L_qr - 2 L_iq) over quadruples of different images (Song et al., 2012)."""
    first, second = first - first.mean(axis=0), second - second.mean(axis=0)

    def hsic(k: np.ndarray, m: np.ndarray) -> float:
        places = list(itertools.permutations(range(len(k)), 4))
        return float(np.mean([k[i, j] * (m[i, j] + m[q, r] - 2 * m[i, q]) for i, j, q, r in places]))

    k, m = first @ first.T, second @ second.T
    return hsic(k, m) / np.sqrt(hsic(k, k) * hsic(m, m))
