"""A block of the encoder in int8, written out in NumPy: rows of numbers become bytes with a scale of their own."""

import numpy as np

from tests.reference.transformer import GELU, layer_norm, softmax


def in_bytes(rows, most=127):
    """Round each row to whole numbers from -most to most; return them with the scale of each row."""
    scales = np.abs(rows).max(axis=-1, keepdims=True) / most
    return np.rint(rows / np.where(scales > 0, scales, 1)), scales


def linear(x, weight, bias):
    """W x + b: a scale for each token, and one for each output."""
    rows, row_scales = in_bytes(x)
    columns, column_scales = in_bytes(weight)
    return rows @ columns.T * row_scales * column_scales.T + bias


def attention(q, k, v):
    """Eq. 6 and 7 for one head. The scale of a value goes into the weights, which are bytes from 0 to 255."""
    (q, q_scales), (k, k_scales), (v, v_scales) = in_bytes(q), in_bytes(k), in_bytes(v)
    scores = q @ k.T * q_scales * k_scales.T / np.sqrt(q.shape[1])
    weights, scales = in_bytes(softmax(scores) * v_scales.T, most=255)
    return weights @ v * scales


def block(z, w, num_heads, eps, gelu):
    """Eq. 2 and 3 for one image; `w` by our names."""
    normed = layer_norm(z, w["norm1.weight"], w["norm1.bias"], eps)
    q, k, v = np.split(linear(normed, w["attention.qkv.weight"], w["attention.qkv.bias"]), 3, axis=1)
    heads = np.array_split(np.arange(z.shape[1]), num_heads)
    mixed = np.concatenate([attention(q[:, head], k[:, head], v[:, head]) for head in heads], axis=1)
    z = z + linear(mixed, w["attention.out.weight"], w["attention.out.bias"])
    normed = layer_norm(z, w["norm2.weight"], w["norm2.bias"], eps)
    hidden = GELU[gelu](linear(normed, w["mlp.hidden.weight"], w["mlp.hidden.bias"]))
    return z + linear(hidden, w["mlp.out.weight"], w["mlp.out.bias"])
