"""Token merging (Bolya et al. 2022), from the paper alone: one image at a time, tokens as lists of patches.

Attention is not weighted here: a token of several patches stands in the sequence of keys that many times, which is what
its size means.
"""

import numpy as np

from tests.reference.transformer import attention_weights, layer_norm, mlp, under


def cosine(one, other):
    return one @ other / (np.linalg.norm(one) * np.linalg.norm(other))


def merge(tokens, members, keys, count, prefix):
    """Return fewer tokens, and the patches of each; `keys` of every token as a mean over heads."""
    count = min(count, (len(tokens) - prefix) // 2)
    first = [number for number in range(len(tokens)) if number % 2 == 0 and number >= prefix]
    second = [number for number in range(len(tokens)) if number % 2 == 1 and number >= prefix]
    proposals = []
    for one in first:
        best = max(second, key=lambda other: cosine(keys[one], keys[other]))
        proposals.append((cosine(keys[one], keys[best]), one, best))
    accepted = {one: other for _, one, other in sorted(proposals, reverse=True)[:count]}
    groups = [[number] for number in range(prefix)]
    groups += [[number] for number in first if number not in accepted]
    groups += [[number, *(one for one, other in accepted.items() if other == number)] for number in second]
    new_tokens = [
        sum(len(members[number]) * tokens[number] for number in group) / sum(len(members[number]) for number in group)
        for group in groups
    ]
    return np.array(new_tokens), [[patch for number in group for patch in members[number]] for group in groups]


def encode(tokens, w, *, depth, num_heads, eps, gelu, count, prefix):
    """Run the blocks on the tokens of one image; return the encoded tokens and the patches of each."""
    members = [[number] for number in range(len(tokens))]
    for layer in range(depth):
        v = under(w, f"encoder.blocks.{layer}.")
        normed = layer_norm(tokens, v["norm1.weight"], v["norm1.bias"], eps)
        qkv = normed @ v["attention.qkv.weight"].T + v["attention.qkv.bias"]
        queries, keys, values = (part.reshape(len(tokens), num_heads, -1) for part in np.split(qkv, 3, axis=1))
        repeated = np.repeat(np.arange(len(tokens)), [len(patches) for patches in members])
        mixed = [
            attention_weights(queries[:, head], keys[repeated, head]) @ values[repeated, head]
            for head in range(num_heads)
        ]
        tokens = tokens + np.concatenate(mixed, axis=1) @ v["attention.out.weight"].T + v["attention.out.bias"]
        tokens, members = merge(tokens, members, keys.mean(axis=1), count, prefix)
        normed = layer_norm(tokens, v["norm2.weight"], v["norm2.bias"], eps)
        tokens = tokens + mlp(
            normed,
            v["mlp.hidden.weight"].T,
            v["mlp.hidden.bias"],
            v["mlp.out.weight"].T,
            v["mlp.out.bias"],
            gelu,
        )
    return layer_norm(tokens, w["encoder.norm.weight"], w["encoder.norm.bias"], eps), members
