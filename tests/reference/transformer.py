"""The paper's equations, written out in NumPy from the paper alone, one image at a time where that reads better."""

import math

import numpy as np


def patchify(images, patch_size):
    """Sec. 3.1; the values of a patch run over channel, row, column."""
    height, width = patch_size
    batch, _, rows, columns = images.shape
    return np.stack(
        [
            [
                images[image, :, top : top + height, left : left + width].ravel()
                for top in range(0, rows, height)
                for left in range(0, columns, width)
            ]
            for image in range(batch)
        ]
    )


def embed(patches, kernel, bias, class_token=None, positions=None):
    """Eq. 1, with E in R^(P^2 C x D)."""
    tokens = patches @ kernel + bias
    if class_token is not None:
        tokens = np.concatenate([np.broadcast_to(class_token, (len(tokens), 1, kernel.shape[1])), tokens], axis=1)
    return tokens if positions is None else tokens + positions


def layer_norm(x, scale, bias, eps):
    mean = x.mean(axis=-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(axis=-1, keepdims=True)
    return (x - mean) / np.sqrt(variance + eps) * scale + bias


def gelu_erf(x):
    return x * 0.5 * (1 + np.vectorize(math.erf, otypes=[np.float64])(x / math.sqrt(2)))


def gelu_tanh(x):
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def gelu_quick(x):
    return x / (1 + np.exp(-1.702 * x))


GELU = {"erf": gelu_erf, "tanh": gelu_tanh, "quick": gelu_quick}


def softmax(scores):
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def attention_weights(queries, keys, offsets=None):
    """Eq. 6 for one head: (query, d) and (key, d) -> (query, key); `offsets` holds a row for each p_q - p_k (D.4)."""
    scores = np.empty((len(queries), len(keys)))
    for q, query in enumerate(queries):
        for k, key in enumerate(keys):
            scores[q, k] = query @ key
            if offsets is not None:
                scores[q, k] += query @ offsets[q - k + len(keys) - 1]
    return softmax(scores / math.sqrt(queries.shape[1]))


def self_attention(tokens, qkv, qkv_bias, out, out_bias, num_heads, offsets=None):
    """Eq. 5-8; `qkv` (D x 3D) holds q, k, v, each with its heads side by side. Returns MSA(z) and A of every head."""
    dim = tokens.shape[2]
    head_dim = dim // num_heads
    answers, maps = [], []
    for z in tokens:
        q, k, v = np.split(z @ qkv + qkv_bias, 3, axis=1)
        heads = [slice(head * head_dim, (head + 1) * head_dim) for head in range(num_heads)]
        weights = [
            attention_weights(q[:, head], k[:, head], None if offsets is None else offsets[:, head]) for head in heads
        ]
        joined = np.concatenate([a @ v[:, head] for a, head in zip(weights, heads, strict=True)], axis=1)
        answers.append(joined @ out + out_bias)
        maps.append(weights)
    return np.array(answers), np.array(maps)


def mlp(x, hidden, hidden_bias, out, out_bias, gelu):
    return GELU[gelu](x @ hidden + hidden_bias) @ out + out_bias


def attention_pool(tokens, weights, num_heads, eps, gelu):
    """Multi-head attention pooling: one learned query, then an MLP with a residual. `weights` by our names."""
    w = weights
    dim = tokens.shape[2]
    head_dim = dim // num_heads
    query = (w["probe"] @ w["query.weight"].T + w["query.bias"])[0]
    pooled = []
    for z in tokens:
        keys, values = np.split(z @ w["key_value.weight"].T + w["key_value.bias"], 2, axis=1)
        parts = []
        for head in range(num_heads):
            part = slice(head * head_dim, (head + 1) * head_dim)
            parts.append(softmax(keys[:, part] @ query[part] / math.sqrt(head_dim)) @ values[:, part])
        pooled.append(np.concatenate(parts) @ w["out.weight"].T + w["out.bias"])
    x = np.array(pooled)
    normed = layer_norm(x, w["norm.weight"], w["norm.bias"], eps)
    hidden, out = w["mlp.hidden.weight"].T, w["mlp.out.weight"].T
    return x + mlp(normed, hidden, w["mlp.hidden.bias"], out, w["mlp.out.bias"], gelu)


def under(weights, prefix):
    """The weights of one module, by their names inside it."""
    return {name.removeprefix(prefix): value for name, value in weights.items() if name.startswith(prefix)}


def block(tokens, w, num_heads, eps, gelu):
    """Eq. 2 and 3; `w` by our names."""
    attention = under(w, "attention.")
    normed = layer_norm(tokens, w["norm1.weight"], w["norm1.bias"], eps)
    mixed, maps = self_attention(
        normed,
        attention["qkv.weight"].T,
        attention["qkv.bias"],
        attention["out.weight"].T,
        attention["out.bias"],
        num_heads,
        attention.get("offsets"),
    )
    tokens = tokens + mixed
    normed = layer_norm(tokens, w["norm2.weight"], w["norm2.bias"], eps)
    hidden, out = w["mlp.hidden.weight"].T, w["mlp.out.weight"].T
    return tokens + mlp(normed, hidden, w["mlp.hidden.bias"], out, w["mlp.out.bias"], gelu), maps
