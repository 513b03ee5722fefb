"""Standardised convolution, SAME padding, pooling and group norm in NumPy, by loops. Arrays are NCHW and OIHW."""

import math

import numpy as np


def standardise(kernel, way, eps):
    rows = []
    for output in kernel:
        mean = output.sum() / output.size
        variance = ((output - mean) ** 2).sum() / output.size
        rows.append(
            (output - mean) / (math.sqrt(variance) + eps if way == "std-plus-eps" else math.sqrt(variance + eps))
        )
    return np.array(rows)


def same_amounts(side, kernel_size, stride):
    """Before and after, so that ceil(side / stride) windows fit; the odd pixel goes after."""
    total = max((math.ceil(side / stride) - 1) * stride + kernel_size - side, 0)
    return total // 2, total - total // 2


def pad_same(images, kernel_size, stride, value=0.0):
    amounts = [(0, 0), (0, 0)] + [same_amounts(side, kernel_size, stride) for side in images.shape[2:]]
    return np.pad(images, amounts, constant_values=value)


def windows(padded, kernel_size, stride):
    """Yield (row, column, window) of every place where the kernel fits."""
    rows = (padded.shape[2] - kernel_size) // stride + 1
    columns = (padded.shape[3] - kernel_size) // stride + 1
    for row in range(rows):
        for column in range(columns):
            top, left = row * stride, column * stride
            yield row, column, padded[:, :, top : top + kernel_size, left : left + kernel_size]


def convolve(padded, kernel, stride):
    size = kernel.shape[2]
    places = {(row, column): window for row, column, window in windows(padded, size, stride)}
    rows, columns = (1 + max(place[axis] for place in places) for axis in (0, 1))
    result = np.zeros((len(padded), len(kernel), rows, columns))
    for (row, column), window in places.items():
        for output, weights in enumerate(kernel):
            result[:, output, row, column] = (window * weights).sum(axis=(1, 2, 3))
    return result


def max_pool(padded, size=3, stride=2):
    places = {(row, column): window.max(axis=(2, 3)) for row, column, window in windows(padded, size, stride)}
    rows, columns = (1 + max(place[axis] for place in places) for axis in (0, 1))
    result = np.zeros((*padded.shape[:2], rows, columns))
    for (row, column), largest in places.items():
        result[:, :, row, column] = largest
    return result


def group_norm(x, scale, bias, groups, eps):
    result = np.empty_like(x)
    each = x.shape[1] // groups
    for image in range(len(x)):
        for group in range(groups):
            part = slice(group * each, (group + 1) * each)
            values = x[image, part]
            result[image, part] = (values - values.mean()) / np.sqrt(values.var() + eps)
    return result * scale[:, None, None] + bias[:, None, None]
