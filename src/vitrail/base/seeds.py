"""One seed, any number of independent streams, each named for what it decides.

Randomness is a function of names and numbers, never of how often something was drawn before: the augmentation of image
7 in epoch 3 is a function of (seed, "augment", 3, 7), in any order, in any process, on any machine.
`generator` serves one purpose at a time; `keys` and `uniform` do the same for a whole batch at once.
"""

import hashlib

import numpy as np
import torch
from jaxtyping import Float, Int, UInt64

Keys = UInt64[np.ndarray, "key"]

GAMMA = np.uint64(0x9E3779B97F4A7C15)  # SplitMix64: the step between two states


def key(seed: int, *path: str | int) -> int:
    """Return 64 well-mixed bits for a seed and a path of names and numbers."""
    text = "/".join(map(str, (seed, *path)))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def generator(seed: int, *path: str | int, device: torch.device | str = "cpu") -> torch.Generator:
    """Return a new generator for one purpose; the same path always gives the same draws."""
    return torch.Generator(device).manual_seed(key(seed, *path))


def keys(root: int, *numbers: Int[np.ndarray, "key"]) -> Keys:
    """Return 64 well-mixed bits for each row of numbers under one `key`."""
    mixed = np.full(len(numbers[0]), root, dtype=np.uint64)
    for number in numbers:
        mixed = mix(mixed + (number.astype(np.uint64) + np.uint64(1)) * GAMMA)
    return mixed


def uniform(keys: Keys, count: int) -> Float[np.ndarray, "key count"]:
    """Draw numbers in [0, 1) for each key: the first outputs of SplitMix64 started there."""
    states = keys[:, None] + np.arange(1, count + 1, dtype=np.uint64) * GAMMA
    return (mix(states) >> np.uint64(11)) * 2.0**-53


def mix(bits: UInt64[np.ndarray, "*any"]) -> UInt64[np.ndarray, "*any"]:
    """Make every bit depend on every bit, one to one (the finaliser of SplitMix64)."""
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))
