"""Token mixers, written out in NumPy patch by patch: who sees whom is decided by rows and columns, never by groups."""

import math

import numpy as np

from tests.reference.transformer import GELU, softmax


def sees(kind, layer, grid, one, other, head=0, heads=1, size=7, stride=None):
    """Whether one patch attends to another, by their places."""
    (row, column), (other_row, other_column) = divmod(one, grid[1]), divmod(other, grid[1])
    if kind == "axial":
        return row == other_row if layer % 2 == 0 else column == other_column
    if kind == "window":
        shifts = [min(size, side) // 2 * (layer % 2) for side in grid]
        windows = [
            ((row + shifts[0]) // min(size, grid[0]), (column + shifts[1]) // min(size, grid[1])),
            ((other_row + shifts[0]) // min(size, grid[0]), (other_column + shifts[1]) // min(size, grid[1])),
        ]
        return windows[0] == windows[1]
    step = stride or grid[1]
    local = head < heads - heads // 2
    return one // step == other // step if local else one % step == other % step


def grouped(tokens, w, num_heads, prefix, grid, **pattern):
    """Attention of patches to those that they see; tokens before the patches attend to all. Returns output and A."""
    dim = tokens.shape[2]
    d = dim // num_heads
    outputs, maps = [], []
    for z in tokens:
        q, k, v = np.split(z @ w["qkv.weight"].T + w["qkv.bias"], 3, axis=1)
        joined, weights = np.zeros_like(z), np.zeros((num_heads, len(z), len(z)))
        for head in range(num_heads):
            part = slice(head * d, (head + 1) * d)
            for i in range(len(z)):
                places = {"grid": grid, "one": i - prefix, "head": head, "heads": num_heads, **pattern}
                seen = [j for j in range(len(z)) if i < prefix or (j >= prefix and sees(other=j - prefix, **places))]
                weights[head, i, seen] = softmax(k[seen, part] @ q[i, part] / math.sqrt(d))
                joined[i, part] = weights[head, i] @ v[:, part]
        outputs.append(joined @ w["out.weight"].T + w["out.bias"])
        maps.append(weights)
    return np.array(outputs), np.array(maps)


def linear(tokens, w, num_heads):
    """A_ij = phi(q_i) . phi(k_j) / sum_j, with phi = elu + 1, one weight at a time. Returns output and A."""
    d = tokens.shape[2] // num_heads
    phi = np.vectorize(lambda x: x + 1 if x > 0 else math.exp(x))
    outputs, maps = [], []
    for z in tokens:
        q, k, v = np.split(z @ w["qkv.weight"].T + w["qkv.bias"], 3, axis=1)
        joined, weights = np.zeros_like(z), np.zeros((num_heads, len(z), len(z)))
        for head in range(num_heads):
            part = slice(head * d, (head + 1) * d)
            for i in range(len(z)):
                products = np.array([phi(q[i, part]) @ phi(key) for key in k[:, part]])
                weights[head, i] = products / products.sum()
                joined[i, part] = weights[head, i] @ v[:, part]
        outputs.append(joined @ w["out.weight"].T + w["out.bias"])
        maps.append(weights)
    return np.array(outputs), np.array(maps)


def pooling(patches, grid, size):
    """The mean over the neighbours inside the grid, minus the patch."""
    cells = patches.reshape(len(patches), *grid, -1)
    mixed, reach = np.empty_like(cells), size // 2
    for row in range(grid[0]):
        for column in range(grid[1]):
            near = cells[:, max(row - reach, 0) : row + reach + 1, max(column - reach, 0) : column + reach + 1]
            mixed[:, row, column] = near.mean(axis=(1, 2)) - cells[:, row, column]
    return mixed.reshape(patches.shape)


def convolution(patches, w, grid):
    """Each channel by its own kernel, with zeros around."""
    kernel, size = w["depthwise.weight"], w["depthwise.weight"].shape[2]
    cells = patches.reshape(len(patches), *grid, -1)
    mixed = np.zeros_like(cells) + w["depthwise.bias"]
    for row in range(grid[0]):
        for column in range(grid[1]):
            for i in range(size):
                for j in range(size):
                    at, beside = row + i - size // 2, column + j - size // 2
                    if 0 <= at < grid[0] and 0 <= beside < grid[1]:
                        mixed[:, row, column] += cells[:, at, beside] * kernel[:, 0, i, j]
    return mixed.reshape(patches.shape)


def token_mlp(patches, w, gelu):
    """Two dense layers over the patches of each channel."""
    mixed = np.empty_like(patches)
    for image, z in enumerate(patches):
        for channel in range(z.shape[1]):
            hidden = GELU[gelu](w["hidden.weight"] @ z[:, channel] + w["hidden.bias"])
            mixed[image, :, channel] = w["out.weight"] @ hidden + w["out.bias"]
    return mixed
