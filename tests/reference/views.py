"""The losses of DINO and MoCo v3 in NumPy, as their papers and releases write them: loops over pairs, no shortcuts."""

import numpy as np


def softmax(values: np.ndarray) -> np.ndarray:
    shifted = np.exp(values - values.max(axis=-1, keepdims=True))
    return shifted / shifted.sum(axis=-1, keepdims=True)


def dino_loss(
    student: np.ndarray, teacher: np.ndarray, centre: np.ndarray, student_temperature: float, teacher_temperature: float
) -> float:
    """Scores of all views by the student, and of the first by the teacher: the mean of -sum p log q over pairs."""
    terms = []
    for seen, scores in enumerate(teacher):
        p = softmax((scores - centre) / teacher_temperature)
        for view, answers in enumerate(student):
            if view == seen:
                continue  # the same view
            q = softmax(answers / student_temperature)
            terms.append(-(p * np.log(q)).sum(axis=-1).mean())
    return float(np.mean(terms))


def unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.sqrt((vectors**2).sum(axis=-1, keepdims=True))


def gelu(x: np.ndarray) -> np.ndarray:
    from scipy.special import erf

    return 0.5 * x * (1 + erf(x / np.sqrt(2)))


def dino_head(features: np.ndarray, layers: list[tuple[np.ndarray, np.ndarray]], prototypes: np.ndarray) -> np.ndarray:
    """Three linear layers with GELU between, length 1, and prototypes of length 1."""
    for number, (weight, bias) in enumerate(layers):
        features = features @ weight.T + bias
        features = gelu(features) if number < len(layers) - 1 else features
    return unit(features) @ unit(prototypes).T


def contrastive_loss(queries: np.ndarray, keys: np.ndarray, temperature: float) -> float:
    """Of the release: cross-entropy over all keys with one's own as the label, times 2 t."""
    logits = unit(queries) @ unit(keys).T / temperature
    return float(np.mean([-np.log(softmax(row)[number]) for number, row in enumerate(logits)]) * 2 * temperature)


def batch_norm(rows: np.ndarray, weight: np.ndarray | None = None, bias: np.ndarray | None = None) -> np.ndarray:
    normal = (rows - rows.mean(0)) / np.sqrt(rows.var(0) + 1e-5)
    return normal if weight is None else normal * weight + bias


def moco_head(rows: np.ndarray, layers: list[tuple[np.ndarray, np.ndarray | None, np.ndarray | None]]) -> np.ndarray:
    """Linear layers, each normalised, with ReLU between."""
    for number, (kernel, weight, bias) in enumerate(layers):
        rows = batch_norm(rows @ kernel.T, weight, bias)
        rows = np.maximum(rows, 0) if number < len(layers) - 1 else rows
    return rows
