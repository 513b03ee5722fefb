"""One seed, any number of independent streams, each named for what it decides.

Randomness is a function of names and numbers, never of how often something was drawn before: the augmentation of image
7 in epoch 3 is `generator(seed, "augment", 3, 7)`, whoever asks, in whatever order, on whatever machine.
"""

import hashlib

import torch


def key(seed: int, *path: str | int) -> int:
    """Return 64 well-mixed bits for a seed and a path of names and numbers."""
    text = "/".join(map(str, (seed, *path)))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def generator(seed: int, *path: str | int, device: torch.device | str = "cpu") -> torch.Generator:
    """Return a new generator for one purpose; the same path always gives the same draws."""
    return torch.Generator(device).manual_seed(key(seed, *path))
